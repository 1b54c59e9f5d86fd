/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. QEMU gets everything as descriptors at the numbers of argv.h and opens
 * nothing of the pod by path. It is up when it has answered the greeting's qmp_capabilities; from
 * then on disks come and go through hotplug.h, which shares the QMP connection. A QEMU that talks
 * nonsense or does not read is killed. Its end is what its pidfd says, never what a socket says.
 */
#include "stage1-kvm/vmm/qemu/qemu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vmm/qemu/argv.h"
#include "stage1-kvm/vmm/qemu/hotplug.h"
#include "stage1-kvm/vmm/qemu/qmp.h"
#include "stage1/pod/process.h"

#define QMP_READ_SIZE ((size_t)4096)

#define FILES_MAX 1024 /* open files: far more than QEMU has */

struct vmm {
	struct process process;
	int qmp_fd;
	struct loop_watch qmp_watch;
	struct qmp qmp;
	struct buf qmp_out;
	bool is_up;
	struct hotplug hotplug;
	const struct vmm_events *events;
	void *ctx;
};

static void kill_qemu(struct vmm *m)
{
	process_kill(&m->process);
}

/* ---- QMP ---- */

/*
 * Sends what is queued, with descriptor @fd unless it is negative. QEMU reads its commands, so one
 * that does not go out at once means that it is stuck.
 */
static int flush_qmp(void *ctx, int fd)
{
	struct vmm *m = ctx;
	size_t sent = 0;
	int r = unix_send_fds(m->qmp_fd, buf_data(&m->qmp_out), buf_len(&m->qmp_out), &fd,
			      fd < 0 ? 0 : 1, &sent);
	if (r == 0 && sent != buf_len(&m->qmp_out))
		r = -EIO;
	if (r == 0)
		buf_consume(&m->qmp_out, sent);
	else
		kill_qemu(m);
	return r;
}

static void send_command(struct vmm *m, const char *name)
{
	if (qmp_command(&m->qmp, &m->qmp_out, name, NULL, NULL) == 0)
		flush_qmp(m, -EBADF);
	else
		kill_qemu(m);
}

static int plug_disk(struct vmm *m, int lun, int fd, backend_done_fn done, void *ctx)
{
	if (m->is_up)
		return hotplug_add(&m->hotplug, lun, fd, done, ctx);
	fd_close(fd);
	return -ENOTCONN;
}

static int unplug_disk(struct vmm *m, int lun, backend_done_fn done, void *ctx)
{
	return m->is_up ? hotplug_remove(&m->hotplug, lun, done, ctx) : -ENOTCONN;
}

/* Its member "nospace" is there only where QEMU would stop the machine. */
static bool tells_disk_error(const struct qmp_msg *msg)
{
	return msg->kind == QMP_EVENT && strcmp(msg->name, "BLOCK_IO_ERROR") == 0;
}

static void take_qmp_message(struct vmm *m, const struct qmp_msg *msg)
{
	if (msg->kind == QMP_GREETING) {
		send_command(m, "qmp_capabilities");
	} else if (msg->kind == QMP_RETURN && !m->is_up) {
		m->is_up = true;
		m->events->up(m->ctx);
	} else if (tells_disk_error(msg)) {
		m->events->disk_error(m->ctx);
	} else {
		hotplug_take(&m->hotplug, msg);
	}
}

static int read_qmp(struct vmm *m)
{
	char chunk[QMP_READ_SIZE];
	ssize_t n = read(m->qmp_fd, chunk, MIN(sizeof(chunk), qmp_room(&m->qmp)));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	int r = qmp_feed(&m->qmp, chunk, (size_t)n);
	while (r == 0) {
		CLEANUP(qmp_msg_deinit) struct qmp_msg msg = { 0 };
		r = qmp_next(&m->qmp, &msg);
		if (r == 0)
			take_qmp_message(m, &msg);
	}
	return r == QMP_INCOMPLETE ? 0 : r;
}

static void on_qmp(void *ctx, uint32_t events)
{
	(void)events;
	struct vmm *m = ctx;
	int r = read_qmp(m);
	if (r == 0)
		return;
	loop_watch_remove(&m->qmp_watch);
	if (r != -ECONNRESET) /* it talks nonsense; its end is reported by its pidfd */
		kill_qemu(m);
}

/* ---- life ---- */

static void on_process_end(void *ctx, struct process *p)
{
	struct vmm *m = ctx;
	char how[PROCESS_HOW_MAX];
	process_describe_end(p, how, sizeof(how));
	m->events->ended(m->ctx, how, m->is_up);
}

/* The largest file that QEMU writes: a disk, or the guest's memory, which is one, too. */
static rlim_t largest_file(const struct vmm_input *in)
{
	rlim_t max = (rlim_t)in->vm->memory_mib << 20;
	for (size_t i = 0; i < in->vm->n_disks; i++) {
		const struct vm_disk *d = &in->vm->disks[i];
		struct stat st;
		if (!d->read_only && fstat(in->sources.disks[i], &st) == 0)
			max = MAX(max, MAX((rlim_t)st.st_size, (rlim_t)d->may_grow));
	}
	return max;
}

static int pass_taps(struct spawn_plan *plan, const struct vm *vm, const struct backend_tap *taps)
{
	int r = 0;
	for (int i = 0; i < (int)vm->n_nics; i++) {
		const struct vm_nic *nic = &vm->nics[i];
		for (int q = 0; r == 0 && q < (int)nic->n_queues; q++) {
			r = spawn_plan_fd(plan, taps[i].queues[q], ARGV_FD_TAP(i, q));
			if (r == 0 && nic->vhost)
				r = spawn_plan_fd(plan, taps[i].vhosts[q], ARGV_FD_VHOST(i, q));
		}
	}
	return r;
}

static int pass_descriptors(struct spawn_plan *plan, const struct vmm_input *in, int qmp,
			    int console)
{
	const struct vmm_sources *s = &in->sources;
	const struct spawn_fd fds[] = {
		{ s->kernel, ARGV_FD_KERNEL }, { s->initrd, ARGV_FD_INITRD },
		{ s->secret, ARGV_FD_SECRET }, { console, ARGV_FD_CONSOLE },
		{ qmp, ARGV_FD_QMP },          { s->vsock, ARGV_FD_VSOCK },
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fds); i++)
		r = spawn_plan_fd(plan, fds[i].source, fds[i].target);
	if (r == 0 && in->vm->shares)
		r = spawn_plan_fd(plan, s->shares, ARGV_FD_SHARES);
	for (size_t i = 0; r == 0 && i < in->vm->n_disks; i++)
		r = spawn_plan_fd(plan, s->disks[i], ARGV_FD_DISK0 + (int)i);
	return r == 0 ? pass_taps(plan, in->vm, s->taps) : r;
}

/* All that it uses it has as descriptors, so this is about what a hole in it would open. */
static void say_network(pid_t pid)
{
	struct stat own, its;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 &&
	    own.st_ino == its.st_ino)
		fprintf(stderr, "stage1: QEMU shares the host's network namespace (the host does "
				"not let users make namespaces)\n");
}

static int start_process(struct vmm *m, struct loop *loop, const struct vmm_input *in, int qmp,
			 int console, struct err *e)
{
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, ARGV_MAX);
	int r = argv_build(in->vm, &argv, e);
	if (r < 0)
		return r;
	struct spawn_plan plan = { .program = in->program,
				   .argv = argv.v,
				   .no_network = true, /* it has all it uses */
				   .change_ids = in->unprivileged_ids,
				   .uid = in->uid,
				   .gid = in->uid };
	spawn_plan_limit(&plan, RLIMIT_NOFILE, FILES_MAX);
	spawn_plan_limit(&plan, RLIMIT_FSIZE, largest_file(in));
	if (in->kvm_has_gid && in->vm->accel == VM_ACCEL_KVM)
		plan.groups[plan.n_groups++] = in->kvm_gid;
	r = pass_descriptors(&plan, in, qmp, console);
	m->process.cgroups = in->cgroups;
	if (r == 0)
		r = process_start(&m->process, loop, &plan, on_process_end, m);
	if (r == -EPERM && in->unprivileged_ids)
		return err_sys(e, r,
			       "QEMU: cannot start \"%s\" with a user id and a network namespace "
			       "of its own (a container that husk is in has to give "
			       "CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID)",
			       in->program);
	if (r == 0 && in->debug)
		say_network(m->process.pid);
	return r < 0 ? err_sys(e, r, "QEMU: cannot start \"%s\"", in->program) : 0;
}

/* Our end of the QMP connection is watched; QEMU's, which is returned, is for it to inherit. */
static int make_qmp_channel(struct vmm *m, struct loop *loop)
{
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return r;
	m->qmp_fd = ends[0];
	r = fd_set_nonblock(m->qmp_fd, true);
	if (r == 0)
		r = loop_watch_add(loop, &m->qmp_watch, m->qmp_fd, EPOLLIN, on_qmp, m);
	if (r < 0)
		fd_close(ends[1]);
	return r < 0 ? r : ends[1];
}

/* Our end of the console goes to whoever reads it; QEMU's is returned. */
static int make_console(struct vmm *m)
{
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return r;
	m->events->console(m->ctx, ends[0]);
	return ends[1];
}

static int make_vsock_ends(const struct vmm_input *in, int *ret_device, int *ret_vmm, struct err *e)
{
	(void)in;
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return err_sys(e, r, "vsock");
	*ret_device = ends[0];
	*ret_vmm = ends[1];
	return 0;
}

static void free_qemu(struct vmm *m)
{
	if (!m)
		return;
	process_deinit(&m->process);
	loop_watch_remove(&m->qmp_watch);
	fd_close(m->qmp_fd);
	hotplug_deinit(&m->hotplug);
	qmp_deinit(&m->qmp);
	buf_deinit(&m->qmp_out);
	free(m);
}

static int start_qemu(struct loop *loop, const struct vmm_input *in,
		      const struct vmm_events *events, void *ctx, struct vmm **ret, struct err *e)
{
	struct vmm *m = calloc(1, sizeof(*m));
	if (!m)
		return err_sys(e, -ENOMEM, "VM");
	m->qmp_fd = -EBADF;
	m->qmp_watch = LOOP_WATCH_INIT;
	m->events = events;
	m->ctx = ctx;
	qmp_init(&m->qmp);
	buf_init(&m->qmp_out, QMP_COMMAND_MAX);
	hotplug_init(&m->hotplug, loop, &m->qmp, &m->qmp_out, flush_qmp, m);
	cleanup_fd int qmp = make_qmp_channel(m, loop);
	cleanup_fd int console = qmp < 0 ? -EBADF : make_console(m);
	int r = qmp < 0       ? err_sys(e, qmp, "QEMU: cannot make its QMP channel")
		: console < 0 ? err_sys(e, console, "VM: cannot make its console")
			      : start_process(m, loop, in, qmp, console, e);
	if (r < 0)
		free_qemu(m);
	else
		*ret = m;
	return r;
}

const struct vmm_driver qemu_driver = {
	.name = "QEMU",
	.is_here = true,
	.has_volumes = true,
	.vsock_ends = make_vsock_ends,
	.start = start_qemu,
	.plug = plug_disk,
	.unplug = unplug_disk,
	.kill = kill_qemu,
	.free = free_qemu,
};
