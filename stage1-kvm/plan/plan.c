/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/macros.h"

/* Position of @s in @names, or -EINVAL. */
static int name_parse(const char *s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(s, names[i]) == 0)
			return (int)i;
	}
	return -EINVAL;
}

int plan_accel_parse(const char *s, enum plan_accel *ret)
{
	static const char *const names[] = {
		[PLAN_ACCEL_AUTO] = "auto", [PLAN_ACCEL_TCG] = "tcg", [PLAN_ACCEL_KVM] = "kvm"
	};
	int i = name_parse(s, names, ARRAY_SIZE(names));

	if (i < 0)
		return i;
	*ret = (enum plan_accel)i;
	return 0;
}

int plan_machine_parse(const char *s, enum plan_machine *ret)
{
	static const char *const names[] = { [PLAN_MACHINE_AUTO] = "auto",
					     [PLAN_MACHINE_MICROVM] = "microvm",
					     [PLAN_MACHINE_Q35] = "q35" };
	int i = name_parse(s, names, ARRAY_SIZE(names));

	if (i < 0)
		return i;
	*ret = (enum plan_machine)i;
	return 0;
}

int plan_vsock_parse(const char *s, enum plan_vsock *ret)
{
	static const char *const names[] = { [PLAN_VSOCK_AUTO] = "auto",
					     [PLAN_VSOCK_USER] = "user",
					     [PLAN_VSOCK_KERNEL] = "kernel" };
	int i = name_parse(s, names, ARRAY_SIZE(names));

	if (i < 0)
		return i;
	*ret = (enum plan_vsock)i;
	return 0;
}

static const char *reason(const char *given)
{
	return given ? given : "not usable";
}

static int choose_accel(enum plan_accel asked, const struct plan_host *host, enum vm_accel *ret,
			struct err *e)
{
	switch (asked) {
	case PLAN_ACCEL_AUTO:
		*ret = host->kvm_usable ? VM_ACCEL_KVM : VM_ACCEL_TCG;
		return 0;
	case PLAN_ACCEL_TCG:
		*ret = VM_ACCEL_TCG;
		return 0;
	case PLAN_ACCEL_KVM:
		if (!host->kvm_usable)
			return err_set(e, -EOPNOTSUPP, "--accel=kvm: %s (or give --accel=tcg)",
				       reason(host->kvm_reason));
		*ret = VM_ACCEL_KVM;
		return 0;
	}
	return err_set(e, -EINVAL, "acceleration %d: unknown (give auto, tcg or kvm)", (int)asked);
}

static int choose_machine(enum plan_machine asked, bool only_q35, enum vm_machine *ret,
			  struct err *e)
{
	switch (asked) {
	case PLAN_MACHINE_AUTO:
		*ret = only_q35 ? VM_MACHINE_Q35 : VM_MACHINE_MICROVM;
		return 0;
	case PLAN_MACHINE_MICROVM:
		if (only_q35)
			return err_set(e, -EOPNOTSUPP,
				       "--machine=microvm: libvirt has no such machine (give "
				       "--machine=q35, or --vmm=qemu)");
		*ret = VM_MACHINE_MICROVM;
		return 0;
	case PLAN_MACHINE_Q35:
		*ret = VM_MACHINE_Q35;
		return 0;
	}
	return err_set(e, -EINVAL, "machine type %d: unknown (give auto, microvm or q35)",
		       (int)asked);
}

static int choose_vsock(enum plan_vsock asked, const struct plan_host *host, enum vm_vsock *ret,
			struct err *e)
{
	switch (asked) {
	case PLAN_VSOCK_AUTO:
		*ret = host->vhost_vsock_usable ? VM_VSOCK_KERNEL : VM_VSOCK_USER;
		return 0;
	case PLAN_VSOCK_USER:
		*ret = VM_VSOCK_USER;
		return 0;
	case PLAN_VSOCK_KERNEL:
		if (!host->vhost_vsock_usable)
			return err_set(e, -EOPNOTSUPP, "--vsock=kernel: %s (or give --vsock=user)",
				       reason(host->vhost_vsock_reason));
		*ret = VM_VSOCK_KERNEL;
		return 0;
	}
	return err_set(e, -EINVAL, "vsock mode %d: unknown (give auto, user or kernel)",
		       (int)asked);
}

/* For apps that have @bytes together, and the rest of the VM. In MiB; it may be beyond any VM. */
static int64_t memory_for(int64_t bytes)
{
	return (bytes + (1 << 20) - 1) / (1 << 20) + PLAN_MEMORY_OVERHEAD;
}

/* In MiB. What is not known is as much as a VM can have. */
static int64_t memory_of_host(const struct plan_host *host)
{
	uint64_t all = host->memory_mib + host->swap_mib;

	return host->memory_mib ? (int64_t)MIN(all, (uint64_t)VM_MEMORY_MAX)
				: (int64_t)VM_MEMORY_MAX;
}

/* For what the @n @apps may use together. */
static int64_t memory_of_apps(const struct pod_app *apps, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += apps[i].isolators.memory;
	return memory_for(sum);
}

/* More than the host has are no use. */
static unsigned cpus_for(int64_t millis, const struct plan_host *host)
{
	int64_t most = host->cpus ? MIN(host->cpus, (unsigned)VM_CPUS_MAX) : VM_CPUS_MAX;

	return (unsigned)MAX(MIN((millis + 999) / 1000, most), (int64_t)PLAN_CPUS_DEFAULT);
}

/* The processors that the @n @apps may use together. */
static unsigned cpus_of_apps(const struct pod_app *apps, size_t n, const struct plan_host *host)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += apps[i].isolators.cpu_millis;
	return cpus_for(sum, host);
}

/*
 * All that the machine has may be promised, to any number of VMs: guests rarely use all at once.
 * But what it can never give makes the guest's kernel fail in the middle of its start.
 */
static int check_memory(unsigned mib, bool is_given, const struct plan_host *host, struct err *e)
{
	if (mib <= memory_of_host(host))
		return 0;
	return err_set(e, -ENOMEM,
		       "a VM of %u MiB%s: this machine has %" PRIu64 " MiB of memory and %" PRIu64
		       " MiB of swap space (%s)",
		       mib, is_given ? "" : ", for the memory limits of the apps", host->memory_mib,
		       host->swap_mib,
		       is_given ? "give a smaller --memory"
				: "lower them, or give the VM's --memory");
}

static int choose_sizes(const struct pod_manifest *pod, const struct plan_options *opts,
			const struct plan_host *host, struct vm *vm, struct err *e)
{
	bool is_given = opts->memory_mib != 0;
	int64_t memory = MAX(memory_of_apps(pod->apps, pod->n_apps), (int64_t)PLAN_MEMORY_DEFAULT);
	unsigned cpus = opts->cpus ? opts->cpus : cpus_of_apps(pod->apps, pod->n_apps, host);

	if (!is_given && memory > (int64_t)VM_MEMORY_MAX)
		return err_set(
			e, -EINVAL,
			"the memory limits of the apps add up to a VM of %jd MiB, at most %d "
			"are possible (lower them, or give the VM's --memory)",
			(intmax_t)memory, VM_MEMORY_MAX);
	if (is_given)
		memory = opts->memory_mib;
	/* Limits of apps to come may be beyond what there is, as anywhere, and the VM is not. */
	if (opts->apps_memory)
		memory = MAX(memory, MIN(memory_for(opts->apps_memory), memory_of_host(host)));
	if (opts->apps_cpu_millis)
		cpus = MAX(cpus, cpus_for(opts->apps_cpu_millis, host));
	vm->memory_mib = (unsigned)memory;
	vm->cpus = cpus;
	if (vm->memory_mib < VM_MEMORY_MIN || vm->memory_mib > VM_MEMORY_MAX)
		return err_set(e, -EINVAL, "memory of %u MiB: out of range (give %dM to %dM)",
			       vm->memory_mib, VM_MEMORY_MIN, VM_MEMORY_MAX);
	if (vm->cpus > VM_CPUS_MAX)
		return err_set(e, -EINVAL, "%u processors: too many (give 1 to %d)", vm->cpus,
			       VM_CPUS_MAX);
	return check_memory(vm->memory_mib, is_given, host, e);
}

int plan_fits(const struct vm *vm, const struct pod_manifest *pod, const struct pod_app *app,
	      const struct plan_options *opts, const struct plan_host *host, struct err *e)
{
	int64_t own = app->isolators.memory >> 20;
	int64_t all = memory_of_apps(pod->apps, pod->n_apps);
	bool is_given = opts->apps_memory || opts->memory_mib;
	/* All that this machine has, which was less than the limits that were said. */
	bool is_all = opts->apps_memory && memory_for(opts->apps_memory) > (int64_t)vm->memory_mib;
	unsigned cpus = opts->apps_cpu_millis || opts->cpus
				? cpus_of_apps(app, 1, host)
				: cpus_of_apps(pod->apps, pod->n_apps, host);
	if (app->isolators.memory && !is_all && (is_given ? own : all) > (int64_t)vm->memory_mib)
		return err_set(e, -ENOSPC,
			       "app \"%s\": its memory limit, %jd MiB, is beyond the VM, which has "
			       "%u MiB for itself and all apps (lower it, or start a pod with "
			       "--memory=%jdMi)",
			       app->name, (intmax_t)own, vm->memory_mib, (intmax_t)all);
	if (app->isolators.cpu_millis && cpus > vm->cpus)
		return err_set(e, -ENOSPC,
			       "app \"%s\": its limit of %g processors is beyond the VM, which has "
			       "%u for all apps (lower it, or start a pod with --cpus=%u)",
			       app->name, (double)app->isolators.cpu_millis / 1000, vm->cpus, cpus);
	return 0;
}

/*
 * What only an emulated guest needs. It reads the host's time stamp counter, and a microvm has
 * nothing to measure its frequency against; the emulated timer runs at 1 GHz, for a kernel that can
 * be told (kernel-config/patches). Patching out the lock prefixes costs more than they do.
 */
static int append_tcg(const struct plan_host *host, const struct vm *vm, struct buf *b)
{
	int r = buf_puts(b, " lapic_timer_khz=1000000");
	if (r == 0 && host->tsc_khz)
		r = buf_printf(b, " tsc_early_khz=%u", host->tsc_khz);
	if (r == 0 && vm->cpus == 1)
		r = buf_puts(b, " noreplace-smp");
	if (r == 0 && host->kernel == PLAN_KERNEL_PACKAGED)
		r = buf_puts(b, " cryptomgr.notests");
	return r;
}

/*
 * virtiofsd has open what the guest remembers, which is as much as it has memory for. Half of what
 * virtiofsd can have is left for what the guest uses, and for what it is about to forget. The
 * packaged kernel cannot be told (kernel-config/patches).
 */
static int append_files(const struct plan_host *host, struct buf *b)
{
	return buf_printf(b, " fuse.max_inodes=%u", host->files / 2);
}

/*
 * Each character on the console is two exits from the guest, and a system call of QEMU. So the
 * kernel's warnings are seen, and the agent's line, which is one; loglevel stands before
 * earlyprintk, which prints what is there when it is read. To make the scratch disk read-only, at
 * the end, ext4 waits for RCU: some 10 ms of doing nothing, if it is not told to hurry. A microvm
 * has no PCI that could be searched, and the agent looks for its disks at the one SCSI target
 * that there is, where the kernel would ask 255 more.
 */
static int make_append(const struct plan_options *opts, const struct plan_host *host, struct vm *vm,
		       struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, VM_APPEND_MAX);
	int r = buf_printf(
		&b,
		"loglevel=%d console=ttyS0 earlyprintk=ttyS0 panic=-1 oops=panic reboot=t "
		"rcupdate.rcu_expedited=1 scsi_mod.scan=manual",
		opts->debug ? 7 : 5);
	if (r == 0 && vm->machine == VM_MACHINE_MICROVM)
		r = buf_puts(&b, " pci=off");
	if (r == 0 && vm->accel == VM_ACCEL_TCG)
		r = append_tcg(host, vm, &b);
	if (r == 0 && vm->shares)
		r = append_files(host, &b);
	if (r < 0)
		return err_sys(e, r, "kernel command line");
	memcpy(vm->append, buf_data(&b), buf_len(&b));
	vm->append[buf_len(&b)] = '\0';
	return 0;
}

static struct vm_disk *add_disk(struct vm *vm, int lun, bool read_only)
{
	struct vm_disk *d = &vm->disks[vm->n_disks++];
	*d = (struct vm_disk){ .lun = lun, .read_only = read_only, .discard = !read_only };
	return d;
}

/* What is on the disk of a volume outlives the pod, so flushes reach the host's. */
static void add_volumes(const struct pod_manifest *pod, struct vm *vm)
{
	for (size_t i = 0; i < pod->volumes.n; i++) {
		const struct volume *v = &pod->volumes.v[i];
		if (!volume_has_source(v) || !pod_manifest_uses_volume(pod, v))
			continue;
		if (v->kind == VOLUME_HOST) {
			vm->shares = true;
			continue;
		}
		struct vm_disk *d = add_disk(vm, AGENT_VOLUME_LUN + (int)i,
					     pod_manifest_only_reads_volume(pod, v));
		d->format = v->format == VOLUME_QCOW2 ? VM_FORMAT_QCOW2 : VM_FORMAT_RAW;
	}
}

_Static_assert(VOLUMES_MAX <= AGENT_VOLUME_SLOTS, "each volume has a slot");

int plan_make(const struct pod_manifest *pod, const struct plan_options *opts,
	      const struct plan_host *host, struct vm *ret, struct err *e)
{
	struct vm vm = { 0 };
	int r;

	if (pod->n_apps > AGENT_APPS_MAX)
		return err_set(e, -EINVAL, "pod: %zu apps (at most %d can run)", pod->n_apps,
			       AGENT_APPS_MAX);
	if ((r = choose_accel(opts->accel, host, &vm.accel, e)) < 0 ||
	    (r = choose_machine(opts->machine, opts->only_q35, &vm.machine, e)) < 0 ||
	    (r = choose_vsock(opts->vsock, host, &vm.vsock, e)) < 0 ||
	    (r = choose_sizes(pod, opts, host, &vm, e)) < 0)
		return r;
	if (vm.vsock == VM_VSOCK_KERNEL)
		vm.guest_cid = host->guest_cid;
	for (size_t i = 0; i < pod->n_apps; i++)
		add_disk(&vm, (int)i, true);
	if (!opts->no_scratch)
		add_disk(&vm, PLAN_SCRATCH_LUN, false)->disposable = true;
	vm.shares = opts->hot_volumes && pod->is_mutable;
	add_volumes(pod, &vm);
	r = make_append(opts, host, &vm, e);
	if (r == 0)
		r = vm_check(&vm, e);
	if (r == 0)
		*ret = vm;
	return r;
}
