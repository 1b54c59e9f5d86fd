/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

static int choose_machine(enum plan_machine asked, enum vm_machine *ret, struct err *e)
{
	switch (asked) {
	case PLAN_MACHINE_AUTO:
	case PLAN_MACHINE_MICROVM:
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

/* What the apps of @pod may use together, and the rest of the VM. In MiB; it may be beyond any VM. */
static int64_t memory_of_apps(const struct pod_manifest *pod)
{
	int64_t sum = 0;

	for (size_t i = 0; i < pod->n_apps; i++)
		sum += pod->apps[i].isolators.memory;
	return (sum + (1 << 20) - 1) / (1 << 20) + PLAN_MEMORY_OVERHEAD;
}

/* The processors that the apps of @pod may use together; more than the host has are no use. */
static unsigned cpus_of_apps(const struct pod_manifest *pod, const struct plan_host *host)
{
	int64_t sum = 0, most = host->cpus ? MIN(host->cpus, (unsigned)VM_CPUS_MAX) : VM_CPUS_MAX;

	for (size_t i = 0; i < pod->n_apps; i++)
		sum += pod->apps[i].isolators.cpu_millis;
	return (unsigned)MAX(MIN((sum + 999) / 1000, most), (int64_t)PLAN_CPUS_DEFAULT);
}

static int choose_sizes(const struct pod_manifest *pod, const struct plan_options *opts,
			const struct plan_host *host, struct vm *vm, struct err *e)
{
	int64_t memory = MAX(memory_of_apps(pod), (int64_t)PLAN_MEMORY_DEFAULT);

	if (!opts->memory_mib && memory > (int64_t)VM_MEMORY_MAX)
		return err_set(
			e, -EINVAL,
			"the memory limits of the apps add up to a VM of %jd MiB, at most %d "
			"are possible (lower them, or give the VM's --memory)",
			(intmax_t)memory, VM_MEMORY_MAX);
	vm->memory_mib = opts->memory_mib ? opts->memory_mib : (unsigned)memory;
	vm->cpus = opts->cpus ? opts->cpus : cpus_of_apps(pod, host);
	if (vm->memory_mib < VM_MEMORY_MIN || vm->memory_mib > VM_MEMORY_MAX)
		return err_set(e, -EINVAL, "memory of %u MiB: out of range (give %dM to %dM)",
			       vm->memory_mib, VM_MEMORY_MIN, VM_MEMORY_MAX);
	if (vm->cpus > VM_CPUS_MAX)
		return err_set(e, -EINVAL, "%u processors: too many (give 1 to %d)", vm->cpus,
			       VM_CPUS_MAX);
	return 0;
}

/*
 * What only an emulated guest needs. It reads the host's time stamp counter, and a microvm has
 * nothing to measure its frequency against; the emulated timer runs at 1 GHz, for a kernel that can be
 * told (kernel-config/patches). Patching out the lock prefixes costs more than they do.
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
 * loglevel stands before earlyprintk, which prints what is there when it is read: so the kernel's
 * banner (a notice) is seen at once and little else. To make the scratch disk read-only, at the end, ext4
 * waits for RCU: some 10 ms of doing nothing, if it is not told to hurry.
 */
static int choose_append(const struct plan_options *opts, const struct plan_host *host,
			 struct vm *vm, struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, VM_APPEND_MAX);
	int r = buf_printf(
		&b,
		"loglevel=%d console=ttyS0 earlyprintk=ttyS0 panic=-1 oops=panic reboot=t "
		"rcupdate.rcu_expedited=1",
		opts->debug ? 7 : 6);
	if (r == 0 && vm->accel == VM_ACCEL_TCG)
		r = append_tcg(host, vm, &b);
	if (r < 0)
		return err_sys(e, r, "kernel command line");
	memcpy(vm->append, buf_data(&b), buf_len(&b));
	vm->append[buf_len(&b)] = '\0';
	return 0;
}

static void assign_fds(struct vm *vm)
{
	vm->kernel_fd = VM_FD_KERNEL;
	vm->initrd_fd = VM_FD_INITRD;
	vm->secret_fd = VM_FD_SECRET;
	vm->console_fd = VM_FD_CONSOLE;
	vm->qmp_fd = VM_FD_QMP;
	vm->vsock_fd = VM_FD_VSOCK;
}

static void add_disk(struct vm *vm, int lun, bool read_only)
{
	vm->disks[vm->n_disks] = (struct vm_disk){
		.fd = VM_FD_DISK0 + (int)vm->n_disks,
		.lun = lun,
		.read_only = read_only,
		.discard = !read_only,
		.disposable = !read_only,
	};
	vm->n_disks++;
}

int plan_process(const struct pod_app *app, struct agent_process *p)
{
	int r;

	if ((r = str_copy(p->cwd, sizeof(p->cwd), app->cwd)) < 0 ||
	    (r = str_copy(p->user, sizeof(p->user), app->user)) < 0 ||
	    (r = str_copy(p->group, sizeof(p->group), app->group)) < 0)
		return r;
	return strv_extend(&p->env, &app->env);
}

/*
 * From the shares of cgroup v1 to the weight of v2, as other runtimes have it: 2 to 262144 become 1 to 10000. 0 stays 0.
 */
static int64_t weight_of_shares(int64_t shares)
{
	return shares == 0 ? 0
			   : 1 + (shares - ISOLATOR_CPU_SHARES_MIN) * 9999 /
					     (ISOLATOR_CPU_SHARES_MAX - ISOLATOR_CPU_SHARES_MIN);
}

int plan_confinement(const struct pod_app *app, struct agent_confinement *c)
{
	const struct isolators *i = &app->isolators;
	int r = strv_extend(&c->groups, &app->groups);

	c->capabilities = AGENT_CAPABILITIES_DEFAULT;
	c->no_new_privs = i->no_new_privs;
	c->read_only_root = app->read_only_root;
	c->oom_score_adj = i->oom_score_adj;
	c->memory_max = i->memory;
	c->cpu_millis = i->cpu_millis;
	c->cpu_weight = weight_of_shares(i->cpu_shares);
	c->pids_max = i->pids_max;
	return r < 0 ? r : strv_extend(&c->rlimits, &i->rlimits);
}

/* Turns app number @lun of the manifest into the agent's message. */
static int app_message(const struct pod_app *app, int lun, struct agent_app_add *m)
{
	int r;

	agent_app_add_init(m);
	m->lun = lun;
	m->keep_streams = stream_modes_can_attach(&app->streams);
	m->process.with_tty = stream_modes_have_tty(&app->streams);
	m->process.with_stdin = app->streams.in == STREAM_MODE_STREAM;
	m->process.null_stdout = app->streams.out == STREAM_MODE_NULL;
	m->process.null_stderr = app->streams.err == STREAM_MODE_NULL;
	if ((r = str_copy(m->app, sizeof(m->app), app->name)) < 0 ||
	    (r = plan_confinement(app, &m->confinement)) < 0 ||
	    (r = plan_process(app, &m->process)) < 0)
		return r;
	if ((r = strv_extend(&m->pre_start, &app->pre_start)) < 0 ||
	    (r = strv_extend(&m->post_stop, &app->post_stop)) < 0)
		return r;
	return strv_extend(&m->process.exec, &app->exec);
}

int plan_app(const struct pod_app *app, int lun, struct agent_app_add *ret, struct err *e)
{
	int r = app_message(app, lun, ret);

	return r < 0 ? err_sys(e, r, "app \"%s\"", app->name) : 0;
}

static int plan_apps(const struct pod_manifest *pod, struct plan *p, struct err *e)
{
	p->apps = calloc(MAX(pod->n_apps, (size_t)1), sizeof(*p->apps));
	if (!p->apps)
		return err_sys(e, -ENOMEM, "plan");
	for (size_t i = 0; i < pod->n_apps; i++) {
		int r;

		p->n_apps++; /* plan_deinit() frees a half-made one, too */
		r = plan_app(&pod->apps[i], (int)i, &p->apps[i], e);
		if (r < 0)
			return r;
		p->streams[i] = pod->apps[i].streams;
		add_disk(&p->vm, (int)i, true);
	}
	return 0;
}

static int plan_fill(const struct pod_manifest *pod, const struct plan_options *opts,
		     const struct plan_host *host, struct plan *p, struct err *e)
{
	int r;

	if ((pod->n_apps == 0 && !pod->is_mutable) || pod->n_apps > AGENT_APPS_MAX)
		return err_set(e, -EINVAL, "pod: %zu apps (1 to %d can run)", pod->n_apps,
			       AGENT_APPS_MAX);
	if ((r = choose_accel(opts->accel, host, &p->vm.accel, e)) < 0 ||
	    (r = choose_machine(opts->machine, &p->vm.machine, e)) < 0 ||
	    (r = choose_vsock(opts->vsock, host, &p->vm.vsock, e)) < 0 ||
	    (r = choose_sizes(pod, opts, host, &p->vm, e)) < 0 ||
	    (r = choose_append(opts, host, &p->vm, e)) < 0 || (r = plan_apps(pod, p, e)) < 0)
		return r;
	p->is_mutable = pod->is_mutable;
	p->exit_policy = pod_manifest_exit_policy(pod);
	assign_fds(&p->vm);
	if (p->vm.vsock == VM_VSOCK_KERNEL)
		p->vm.guest_cid = host->guest_cid;
	p->with_scratch = !opts->no_scratch;
	p->setup.scratch_lun = p->with_scratch ? PLAN_SCRATCH_LUN : -1;
	if (p->with_scratch)
		add_disk(&p->vm, PLAN_SCRATCH_LUN, false);
	return vm_check(&p->vm, e);
}

int plan_make(const struct pod_manifest *pod, const struct plan_options *opts,
	      const struct plan_host *host, struct plan *ret, struct err *e)
{
	struct plan p = { 0 };
	int r = plan_fill(pod, opts, host, &p, e);

	if (r < 0) {
		plan_deinit(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void plan_deinit(struct plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_apps; i++)
		agent_app_add_deinit(&p->apps[i]);
	free(p->apps);
	p->apps = NULL;
	p->n_apps = 0;
}
