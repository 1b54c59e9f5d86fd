/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A pod is a VM of one VMM process, which a driver starts, with the serial
 * console as a socket that is read here, and, unless the host's kernel carries the guest's vsock, a
 * husk-vsock process, and for volumes of the host a virtiofsd. The VMM decides when the pod has
 * ended: these end with it, and what the console says last tells why. Everything the VMM needs is
 * opened here and given to the driver as descriptors.
 */
#include "stage1/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/userns.h"
#include "lib/os/volume_source.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/backend/host_limits.h"
#include "stage1-kvm/backend/options.h"
#include "stage1-kvm/backend/scratch.h"
#include "stage1-kvm/backend/shares.h"
#include "stage1-kvm/backend/vsock_device.h"
#include "stage1-kvm/hostfacts/facts.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/vmm/libvirt/uri.h"
#include "stage1-kvm/vmm/vmm.h"
#include "stage1/pod/cgroup_parent.h"
#include "stage1/pod/console.h"
#include "stage1/pod/podfiles.h"

#define CONSOLE_READ_SIZE ((size_t)4096)
#define CONSOLE_REST_MAX  256          /* reads of that size; a socket holds some 200 KiB */
#define NAME_FILE_MAX     ((size_t)64) /* a DNS label */

struct backend_pod {
	struct kvm_options options;
	const struct backend_input *in; /* NULL: not prepared */
	struct facts facts;
	struct vm vm;
	struct host_limits limits;
	int scratch; /* its disk, or -EBADF */
	struct vmm *vmm;
	char *name; /* that people gave the pod, owned; NULL: none */
	struct process vsock, shares;
	struct err shares_end; /* why it ended, if that is a failure */
	char virtiofsd[PATH_MAX];
	struct console console;
	int console_fd;
	struct loop *loop;
	struct loop_watch console_watch;
	const struct backend_events *events;
	void *ctx;
};

static struct backend_pod *create_pod(void)
{
	struct backend_pod *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	kvm_options_init(&p->options);
	p->facts = FACTS_INIT;
	p->limits = HOST_LIMITS_INIT;
	p->scratch = p->console_fd = -EBADF;
	p->console = CONSOLE_INIT;
	p->console_watch = LOOP_WATCH_INIT;
	p->shares_end = ERR_INIT;
	return p;
}

static int take_option(struct backend_pod *p, const char *name, const char *value, struct err *e)
{
	return kvm_options_take(&p->options, name, value, e);
}

static uint64_t in_mib(uint64_t bytes)
{
	return (bytes + (1 << 20) - 1) >> 20;
}

static struct plan_options plan_options(const struct backend_pod *p)
{
	const struct kvm_options *o = &p->options;
	return (struct plan_options){ .accel = o->accel,
				      .machine = o->machine,
				      .vsock = o->vsock,
				      .memory_mib = (unsigned)in_mib(o->memory),
				      .cpus = (unsigned)o->cpus,
				      .apps_memory = (int64_t)o->apps_memory,
				      .apps_cpu_millis = o->apps_cpu_millis,
				      .only_q35 = o->driver->only_q35,
				      .debug = p->in->debug,
				      .no_scratch = !p->in->cache_dir,
				      .hot_volumes = o->hot_volumes };
}

static int make_plan(struct backend_pod *p, struct err *e)
{
	const struct kvm_options *o = &p->options;
	const struct facts_options where = { .qemu = o->qemu, .kernel = o->kernel };
	const struct plan_options options = plan_options(p);
	struct plan_host host;
	int r = facts_collect(&where, o->accel, o->vsock, &p->facts, e);
	if (r < 0)
		return r;
	facts_to_plan(&p->facts, &host);
	return plan_make(p->in->manifest, &options, &host, &p->vm, e);
}

static int fits(const struct backend_pod *p, const struct pod_manifest *pod,
		const struct pod_app *app, struct err *e)
{
	const struct plan_options options = plan_options(p);
	struct plan_host host;
	facts_to_plan(&p->facts, &host);
	return plan_fits(&p->vm, pod, app, &options, &host, e);
}

static const char *libvirt_uri(const struct backend_pod *p)
{
	return p->options.libvirt_uri ? p->options.libvirt_uri : libvirt_default_uri();
}

static int check_volumes(struct backend_pod *p, bool of_host, bool on_disks, struct err *e)
{
	if ((of_host || on_disks) && !p->options.driver->has_volumes)
		return err_set(e, -EOPNOTSUPP,
			       "volumes of kind=%s are not there with --vmm=libvirt (give "
			       "--vmm=qemu)",
			       of_host ? "host" : "block");
	return of_host ? shares_find(p->options.virtiofsd, p->virtiofsd, e) : 0;
}

static int check_pod(struct backend_pod *p, const struct backend_wishes *wishes, struct err *e)
{
	const struct pod_manifest none = { 0 };
	const struct backend_input in = { .pod_fd = -EBADF, .manifest = &none };
	p->in = &in;
	int r = make_plan(p, e);
	p->in = NULL;
	if (r == 0)
		r = check_volumes(p, wishes->host_volumes || p->options.hot_volumes,
				  wishes->block_volumes, e);
	return r == 0 && p->options.driver->check
		       ? p->options.driver->check(libvirt_uri(p), true, e)
		       : r;
}

/*
 * A daemon that runs machines has its own ways to limit them. Somebody who is not root is not told
 * each time that he may not.
 */
static int limit_pod(struct backend_pod *p, struct err *e)
{
	struct err why = ERR_INIT;
	if (!p->options.driver->is_here)
		return *p->in->cgroup_parent
			       ? err_set(e, -EOPNOTSUPP,
					 "--cgroup-parent: where a domain of libvirt is counted is "
					 "libvirt's to say (leave it out, give / or --vmm=qemu)")
			       : 0;
	int r = host_limits_make(p->in->uuid, p->in->cgroup_parent, &p->vm, p->options.cpus > 0,
				 &p->limits, &why);
	if (r < 0)
		*e = why;
	else if (r > 0 && (geteuid() == 0 || p->in->debug))
		fprintf(stderr, "stage1: warning: %s\n", why.text);
	p->vsock.cgroups = p->shares.cgroups = &p->limits.procs;
	return MIN(r, 0);
}

static int prepare_pod(struct backend_pod *p, const struct backend_input *in,
		       struct agent_pod_setup *setup, struct err *e)
{
	p->in = in;
	size_t len;
	int r = file_read_at(in->pod_fd, POD_FILE_NAME, NAME_FILE_MAX, &p->name, &len);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, "pod directory: \"%s\"", POD_FILE_NAME);
	r = make_plan(p, e);
	if (r == 0)
		r = check_volumes(p, p->vm.shares, vm_has_volume_disks(&p->vm), e);
	if (r == 0)
		r = limit_pod(p, e);
	if (r < 0 || !in->cache_dir)
		return r;
	/* A template is made for each size: whole MiB are enough of them. */
	p->scratch =
		scratch_create(in->pod_fd, in->cache_dir, in_mib(p->options.scratch_size) << 20, e);
	setup->scratch_lun = PLAN_SCRATCH_LUN;
	return p->scratch < 0 ? p->scratch : 0;
}

/* ---- what happens ---- */

/* Whether there may be more. */
static bool read_console(struct backend_pod *p)
{
	char chunk[CONSOLE_READ_SIZE];
	ssize_t n = read(p->console_fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		loop_watch_remove(&p->console_watch);
		return false;
	}
	size_t lines = p->console.n_lines;
	console_feed(&p->console, chunk, (size_t)n);
	if (p->console.n_lines != lines) {
		p->events->reached(p->ctx, "first kernel line");
		p->events->spoke(p->ctx); /* the agent prints a line when it listens */
	}
	return true;
}

static void on_console(void *ctx, uint32_t events)
{
	(void)events;
	read_console(ctx);
}

static void on_console_there(void *ctx, int fd)
{
	struct backend_pod *p = ctx;
	p->console_fd = fd;
	/* Without it nothing is said of the start, and nothing logged; the pod can run. */
	if (fd_set_nonblock(fd, true) == 0)
		loop_watch_add(p->loop, &p->console_watch, fd, EPOLLIN, on_console, p);
}

static void on_vmm_up(void *ctx)
{
	struct backend_pod *p = ctx;
	p->events->reached(p->ctx, "VMM up");
}

static void on_disk_error(void *ctx)
{
	struct backend_pod *p = ctx;
	p->events->disk_error(p->ctx);
}

static void on_suspended(void *ctx, bool is)
{
	struct backend_pod *p = ctx;
	p->events->suspended(p->ctx, is);
}

/* Where it is so, why it was killed tells more than that it was. */
static void explain_kill(struct backend_pod *p, struct err *why)
{
	const char *parent = p->in->cgroup_parent;
	if (host_limits_killed(&p->limits))
		err_set(why, -ENOMEM,
			"the kernel killed the VM, which took more than %" PRIu64
			" MiB of the host's memory: its own %u MiB, and what is allowed for "
			"running it%s%.*s (see husk-run(1), LIMITS ON THE HOST)",
			in_mib(p->limits.memory), p->vm.memory_mib,
			*parent ? "; or than there was in control group /" : "",
			(int)(strlen(parent) - cgroup_parent_is_own(parent)), parent);
}

/* The guest's own last words tell more than an exit code. */
static void on_vmm_ended(void *ctx, const char *how, bool was_up)
{
	struct backend_pod *p = ctx;
	struct err why = ERR_INIT;
	/* What is there, but no more than a socket holds: somebody else may have its other end. */
	for (int i = 0; i < CONSOLE_REST_MAX && p->console_watch.loop && read_console(p); i++)
		;
	loop_watch_remove(&p->console_watch);
	if (!was_up) /* it may not have found what it needs of that */
		process_await(&p->shares, SHARES_END_MS);
	if (!was_up && p->shares_end.code < 0)
		why = p->shares_end;
	else if (p->console.panic[0])
		err_set(&why, -EIO,
			"the guest kernel panicked: \"%s\" (see %s in the pod directory)",
			p->console.panic, POD_FILE_CONSOLE);
	else if (was_up)
		err_set(&why, -EIO,
			"the VM ended unexpectedly: %s: %s (see %s in the pod directory)",
			p->options.driver->name, how, POD_FILE_CONSOLE);
	else
		err_set(&why, -EIO, "%s did not start: %s", p->options.driver->name, how);
	explain_kill(p, &why);
	p->events->ended(p->ctx, &why);
}

static const struct vmm_events vmm_events = {
	.up = on_vmm_up,
	.console = on_console_there,
	.suspended = on_suspended,
	.disk_error = on_disk_error,
	.ended = on_vmm_ended,
};

static void on_vsock_end(void *ctx, struct process *process)
{
	struct backend_pod *p = ctx;
	char how[PROCESS_HOW_MAX];
	struct err why = ERR_INIT;
	if (process_ended_well(process))
		return; /* the VMM has hung up: its own end, which may take longer, tells more */
	process_describe_end(process, how, sizeof(how));
	err_set(&why, -EIO, "the vsock device ended unexpectedly: husk-vsock: %s", how);
	explain_kill(p, &why);
	p->events->helper_ended(p->ctx, &why);
}

/* As with husk-vsock: when the VMM has hung up, that tells more. */
static void on_shares_end(void *ctx, struct process *process)
{
	struct backend_pod *p = ctx;
	char how[PROCESS_HOW_MAX];
	if (process_ended_well(process))
		return;
	process_describe_end(process, how, sizeof(how));
	err_set(&p->shares_end, -EIO, "what serves volumes ended unexpectedly: virtiofsd: %s", how);
	explain_kill(p, &p->shares_end);
	p->events->helper_ended(p->ctx, &p->shares_end);
}

/* ---- start ---- */

struct sources {
	struct vmm_sources vmm; /* owned, but for the disks */
	int disks[VM_DISKS_MAX];
};

static void sources_deinit(struct sources *s)
{
	fd_close(s->vmm.kernel);
	fd_close(s->vmm.initrd);
	fd_close(s->vmm.secret);
	fd_close(s->vmm.vsock);
	fd_close(s->vmm.shares);
}

static int open_boot_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "guest kernel: \"%s\"", path) : fd;
}

/* husk-vsock connects the guest to nobody; the kernel's device connects it to the whole host. */
static bool own_vsock(const struct backend_pod *p)
{
	return p->vm.vsock == VM_VSOCK_USER;
}

/* The guest's vsock as the VMM gets it: -EBADF if it opens that itself. */
static int open_vsock(struct backend_pod *p, const struct vmm_input *in, int *ret, struct err *e)
{
	if (p->vm.vsock == VM_VSOCK_KERNEL) {
		*ret = vsock_device_of_kernel(p->in->pod_fd, p->facts.vhost_vsock.fd,
					      p->vm.guest_cid, e);
		if (*ret >= 0 && p->options.driver->opens_vhost) {
			fd_replace(ret, -EBADF); /* the CID is claimed by one at a time */
			fd_replace(&p->facts.vhost_vsock.fd, -EBADF);
			return 0;
		}
		return *ret < 0 ? *ret : 0;
	}
	cleanup_fd int device = -EBADF;
	int r = p->options.driver->vsock_ends(in, &device, ret, e);
	return r < 0 ? r
		     : vsock_device_start(&p->vsock, p->loop, p->in, device, on_vsock_end, p, e);
}

/*
 * What a qcow2 file of a disk of that many bytes can become: with the smallest clusters, of 512
 * bytes, tables are a fiftieth of the data.
 */
static uint64_t largest_qcow2(uint64_t size)
{
	return size + size / 16 + (UINT64_C(64) << 20);
}

/* The descriptors of the disks, in the order of the plan; and what only they tell. */
static void fill_disks(struct backend_pod *p, const int *images, int *disks)
{
	size_t n_apps = p->in->manifest->n_apps;
	for (size_t i = 0; i < p->vm.n_disks; i++) {
		struct vm_disk *d = &p->vm.disks[i];
		struct stat st;
		bool is_volume = d->lun >= AGENT_VOLUME_LUN && d->lun != PLAN_SCRATCH_LUN;
		disks[i] = i < n_apps  ? images[i]
			   : is_volume ? p->in->blocks[d->lun - AGENT_VOLUME_LUN]
				       : p->scratch;
		d->is_device = is_volume && fstat(disks[i], &st) == 0 && S_ISBLK(st.st_mode);
		if (d->format == VM_FORMAT_QCOW2)
			d->may_grow = largest_qcow2(volume_source_qcow2_size(disks[i]));
	}
}

static int open_sources(struct backend_pod *p, const int *images, struct sources *s, struct err *e)
{
	int r = console_init(&p->console, p->in->pod_fd);
	if (r < 0)
		return err_sys(e, r, "pod directory: cannot write \"%s\"", POD_FILE_CONSOLE);
	s->vmm.kernel = open_boot_file(p->facts.kernel.vmlinux, e);
	if (s->vmm.kernel < 0)
		return s->vmm.kernel;
	s->vmm.initrd = open_boot_file(p->facts.kernel.initramfs, e);
	if (s->vmm.initrd < 0)
		return s->vmm.initrd;
	s->vmm.secret = podfiles_pass_secret(p->in->secret);
	if (s->vmm.secret < 0)
		return err_sys(e, s->vmm.secret, "VM: cannot pass it the secret");
	fill_disks(p, images, s->disks);
	s->vmm.disks = s->disks;
	const struct shares_input shares = {
		.virtiofsd = p->virtiofsd,
		.manifest = p->in->manifest,
		.base = p->options.volumes_as_host ? 0 : userns_base(p->in->uuid),
		.files = p->facts.files,
	};
	return p->vm.shares ? shares_start(&p->shares, p->loop, &shares, &s->vmm.shares,
					   on_shares_end, p, e)
			    : 0;
}

static size_t count_queues(const struct backend_pod *p)
{
	return MIN(p->vm.cpus, VM_QUEUES_MAX);
}

/* A device for each interface of the pod's namespace, which looks the same. */
static void plan_nics(struct backend_pod *p)
{
	const struct backend_net *net = &p->in->net;
	for (size_t i = 0; net->net && i < net->net->n_interfaces; i++) {
		const struct net_interface *from = &net->net->interfaces[i];
		struct vm_nic *nic = &p->vm.nics[p->vm.n_nics++];
		memcpy(nic->mac, from->mac, sizeof(nic->mac));
		nic->mtu = from->mtu;
		nic->n_queues = net->taps[i].n_queues;
		nic->vhost = net->taps[i].has_vhost;
		nic->stream = net->taps[i].is_stream;
	}
}

static int start_pod(struct backend_pod *p, struct loop *loop, const int *images,
		     const struct backend_events *events, void *ctx, struct err *e)
{
	CLEANUP(sources_deinit)
	struct sources s = { .vmm = { .kernel = -EBADF,
				      .initrd = -EBADF,
				      .secret = -EBADF,
				      .vsock = -EBADF,
				      .taps = p->in->net.taps,
				      .shares = -EBADF } };
	p->loop = loop;
	p->events = events;
	p->ctx = ctx;
	plan_nics(p);
	int r = vm_check_devices(&p->vm, e);
	if (r == 0)
		r = open_sources(p, images, &s, e);
	if (r < 0)
		return r;
	struct vmm_input input = { .vm = &p->vm,
				   .sources = s.vmm,
				   .pod_fd = p->in->pod_fd,
				   .uuid = p->in->uuid,
				   .name = p->name,
				   .cache_dir = p->in->cache_dir,
				   .program = p->facts.qemu,
				   .uri = libvirt_uri(p),
				   .cgroups = &p->limits.procs,
				   .unprivileged_ids = p->in->unprivileged_ids,
				   .uid = p->in->uid,
				   .kvm_has_gid = p->facts.kvm_has_gid,
				   .kvm_gid = p->facts.kvm_gid,
				   .debug = p->in->debug };
	r = open_vsock(p, &input, &s.vmm.vsock, e);
	input.sources.vsock = s.vmm.vsock;
	return r < 0 ? r : p->options.driver->start(loop, &input, &vmm_events, p, &p->vmm, e);
}

/* ---- while it runs ---- */

static int plug_image(struct backend_pod *p, int slot, int fd, backend_done_fn done, void *ctx)
{
	return p->options.driver->plug(p->vmm, slot, fd, done, ctx);
}

static int unplug_image(struct backend_pod *p, int slot, backend_done_fn done, void *ctx)
{
	return p->options.driver->unplug(p->vmm, slot, done, ctx);
}

static void kill_pod(struct backend_pod *p)
{
	p->options.driver->kill(p->vmm);
}

/*
 * All at once, since each has mapped the guest's memory and freeing it is most of what they would
 * still do: what the guest was told is written is in the files of its disks.
 */
static void drop_pod(struct backend_pod *p)
{
	p->options.driver->kill(p->vmm);
	process_kill(&p->vsock);
}

static const char *last_words(const struct backend_pod *p)
{
	return p->console.last;
}

static void free_pod(struct backend_pod *p)
{
	if (!p)
		return;
	p->options.driver->free(p->vmm);
	process_deinit(&p->vsock);
	process_await(&p->shares, SHARES_END_MS);
	process_deinit(&p->shares);
	host_limits_end(&p->limits);
	loop_watch_remove(&p->console_watch);
	fd_close(p->console_fd);
	console_deinit(&p->console);
	if (p->in)
		vsock_device_forget(p->in->pod_fd);
	fd_close(p->scratch);
	facts_deinit(&p->facts);
	free(p->name);
	free(p);
}

const struct backend flavor_backend = {
	.flavor = "kvm",
	.queues = count_queues,
	.options = kvm_option_names,
	.route = &flavor_route,
	.own_vsock = own_vsock,
	.create = create_pod,
	.option = take_option,
	.check = check_pod,
	.prepare = prepare_pod,
	.start = start_pod,
	.fits = fits,
	.plug = plug_image,
	.unplug = unplug_image,
	.kill = kill_pod,
	.drop = drop_pod,
	.last_words = last_words,
	.free = free_pod,
};
