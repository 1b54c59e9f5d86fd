/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/unix.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/plan/argv.h"

#define CONSOLE_READ_SIZE ((size_t)4096)

/* Descriptors of husk-vsock. */
#define VSOCK_FD_VHOST  3
#define VSOCK_FD_LISTEN 4

/* Open files: far more than QEMU has, and what husk-vsock takes for all its streams. */
#define QEMU_FILES_MAX  1024
#define VSOCK_FILES_MAX 2048

/* The CID that husk-vsock tells the guest. Every guest has its own device, so all can have one. */
#define VSOCK_GUEST_CID 3

/* QEMU's ends of the channels between us and it. */
struct qemu_ends {
	int kernel, initrd, secret, console, qmp, vsock;
};

static void qemu_ends_deinit(struct qemu_ends *q)
{
	fd_close(q->kernel);
	fd_close(q->initrd);
	fd_close(q->secret);
	fd_close(q->console);
	fd_close(q->qmp);
	fd_close(q->vsock);
}

/* ---- console ---- */

static void on_console(void *ctx, uint32_t events)
{
	(void)events;
	struct machine *m = ctx;
	char chunk[CONSOLE_READ_SIZE];
	ssize_t n = read(m->console_fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		loop_watch_remove(&m->console_watch);
		return;
	}
	size_t lines = m->console.n_lines;
	console_feed(&m->console, chunk, (size_t)n);
	if (m->console.n_lines != lines)
		m->ops->console(m->ctx);
}

/* ---- QMP ---- */

/*
 * Sends what is queued, with descriptor @fd unless it is negative. QEMU reads its commands, so one
 * that does not go out at once means that it is stuck.
 */
static int flush_qmp(void *ctx, int fd)
{
	struct machine *m = ctx;
	size_t sent = 0;
	int r = unix_send_fds(m->qmp_fd, buf_data(&m->qmp_out), buf_len(&m->qmp_out), &fd,
			      fd < 0 ? 0 : 1, &sent);
	if (r == 0 && sent != buf_len(&m->qmp_out))
		r = -EIO;
	if (r == 0)
		buf_consume(&m->qmp_out, sent);
	else
		machine_kill(m);
	return r;
}

static void send_command(struct machine *m, const char *name)
{
	if (qmp_command(&m->qmp, &m->qmp_out, name, NULL, NULL) == 0)
		flush_qmp(m, -EBADF);
	else
		machine_kill(m);
}

int machine_plug(struct machine *m, int lun, int fd, hotplug_done_fn done, void *ctx)
{
	if (m->qmp_up)
		return hotplug_add(&m->hotplug, lun, fd, done, ctx);
	fd_close(fd);
	return -ENOTCONN;
}

int machine_unplug(struct machine *m, int lun, hotplug_done_fn done, void *ctx)
{
	return m->qmp_up ? hotplug_remove(&m->hotplug, lun, done, ctx) : -ENOTCONN;
}

/* Its member "nospace" is there only where QEMU would stop the machine. */
static bool tells_disk_error(const struct qmp_msg *msg)
{
	return msg->kind == QMP_EVENT && strcmp(msg->name, "BLOCK_IO_ERROR") == 0;
}

static void on_qmp_message(struct machine *m, const struct qmp_msg *msg)
{
	if (msg->kind == QMP_GREETING) {
		send_command(m, "qmp_capabilities");
	} else if (msg->kind == QMP_RETURN && !m->qmp_up) {
		m->qmp_up = true;
		m->ops->qmp_up(m->ctx);
	} else if (tells_disk_error(msg)) {
		m->ops->disk_error(m->ctx);
	} else {
		hotplug_take(&m->hotplug, msg);
	}
}

static int read_qmp(struct machine *m)
{
	char chunk[CONSOLE_READ_SIZE];
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
			on_qmp_message(m, &msg);
	}
	return r == QMP_INCOMPLETE ? 0 : r;
}

static void on_qmp(void *ctx, uint32_t events)
{
	(void)events;
	struct machine *m = ctx;
	int r = read_qmp(m);
	if (r == 0)
		return;
	loop_watch_remove(&m->qmp_watch);
	if (r != -ECONNRESET) /* it talks nonsense; its end is reported by its pidfd */
		machine_kill(m);
}

void machine_kill(struct machine *m)
{
	process_kill(&m->qemu);
}

void machine_drop(struct machine *m)
{
	process_kill(&m->qemu);
	process_kill(&m->vsock);
}

/* ---- start ---- */

static void on_qemu_end(void *ctx, struct process *p)
{
	struct machine *m = ctx;
	char how[MACHINE_HOW_MAX];
	process_describe_end(p, how, sizeof(how));
	while (m->console_watch.loop) /* its last words */
		on_console(m, 0);
	m->ops->qemu_ended(m->ctx, how);
}

static void on_vsock_end(void *ctx, struct process *p)
{
	struct machine *m = ctx;
	char how[MACHINE_HOW_MAX];
	process_describe_end(p, how, sizeof(how));
	m->ops->vsock_ended(m->ctx, how);
}

static int open_boot_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "guest kernel: \"%s\"", path) : fd;
}

/* The secret in a file without a name, so that no command line shows it. */
static int make_secret_file(const char *secret)
{
	cleanup_fd int fd = memfd_create("husk-secret", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, secret, strlen(secret));
	return r < 0 ? r : TAKE_FD(fd);
}

/* A channel whose one end we watch and whose other end QEMU gets. */
static int make_channel(struct machine *m, int *ours, struct loop_watch *w, loop_watch_fn fn,
			int *theirs)
{
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return r;
	*ours = ends[0];
	*theirs = ends[1];
	r = fd_set_nonblock(*ours, true);
	return r < 0 ? r : loop_watch_add(m->loop, w, *ours, EPOLLIN, fn, m);
}

static int make_ends(struct machine *m, const struct machine_input *in, struct qemu_ends *q,
		     struct err *e)
{
	q->kernel = open_boot_file(in->facts->kernel.vmlinux, e);
	if (q->kernel < 0)
		return q->kernel;
	q->initrd = open_boot_file(in->facts->kernel.initramfs, e);
	if (q->initrd < 0)
		return q->initrd;
	q->secret = make_secret_file(in->secret);
	int r = q->secret < 0 ? q->secret : 0;
	if (r == 0)
		r = make_channel(m, &m->console_fd, &m->console_watch, on_console, &q->console);
	if (r == 0)
		r = make_channel(m, &m->qmp_fd, &m->qmp_watch, on_qmp, &q->qmp);
	return r < 0 ? err_sys(e, r, "VM: cannot make its channels") : 0;
}

/* The largest file that QEMU writes: a disk, or the guest's memory, which is one, too. */
static rlim_t largest_file(const struct machine_input *in)
{
	rlim_t max = (rlim_t)in->vm->memory_mib << 20;
	for (size_t i = 0; i < in->vm->n_disks; i++) {
		struct stat st;
		if (!in->vm->disks[i].read_only && fstat(in->disk_fds[i], &st) == 0)
			max = MAX(max, (rlim_t)st.st_size);
	}
	return max;
}

static void confine(struct spawn_plan *plan, const struct machine_input *in, rlim_t n_files,
		    rlim_t file_size)
{
	spawn_plan_limit(plan, RLIMIT_NOFILE, n_files);
	spawn_plan_limit(plan, RLIMIT_FSIZE, file_size);
	plan->change_ids = in->unprivileged_ids;
	plan->uid = in->uid;
	plan->gid = in->uid;
}

/* Starts husk-vsock; QEMU's end of its vhost-user socket is left in @q. */
static int start_vsock(struct machine *m, const struct machine_input *in, struct qemu_ends *q,
		       struct err *e)
{
	cleanup_fd int listener = unix_listen(POD_FILE_VSOCK, 0600);
	if (listener < 0)
		return err_sys(e, listener, "vsock: cannot listen on \"%s\" in the pod directory",
			       POD_FILE_VSOCK);
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return err_sys(e, r, "vsock");
	cleanup_fd int device_end = ends[0];
	q->vsock = ends[1];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, 8);
	r = strv_add(&argv, "husk-vsock");
	if (r == 0)
		r = strv_addf(&argv, "--vhost-fd=%d", VSOCK_FD_VHOST);
	if (r == 0)
		r = strv_addf(&argv, "--listen-fd=%d", VSOCK_FD_LISTEN);
	if (r == 0)
		r = strv_addf(&argv, "--guest-cid=%d", VSOCK_GUEST_CID);
	struct spawn_plan plan = { .program = in->vsock_program, .argv = argv.v };
	confine(&plan, in, VSOCK_FILES_MAX, 0);
	spawn_plan_fd(&plan, device_end, VSOCK_FD_VHOST);
	spawn_plan_fd(&plan, listener, VSOCK_FD_LISTEN);
	if (r == 0)
		r = process_start(&m->vsock, m->loop, &plan, on_vsock_end, m);
	return r < 0 ? err_sys(e, r, "vsock: cannot start \"%s\"", in->vsock_program) : 0;
}

/* The host's kernel is the device: QEMU gets it with the CID that is claimed on it. */
static int take_vhost(const struct machine_input *in, struct qemu_ends *q, struct err *e)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u\n", in->vm->guest_cid);
	q->vsock = fcntl(in->facts->vhost_vsock.fd, F_DUPFD_CLOEXEC, 0);
	int r = q->vsock < 0 ? -errno
			     : file_replace_at(in->pod_fd, POD_FILE_CID, text, (size_t)len, 0640);
	return r < 0 ? err_sys(e, r, "vsock: \"%s\" in the pod directory", POD_FILE_CID) : 0;
}

struct dial_target machine_dial_target(const struct vm *vm)
{
	if (vm->vsock == VM_VSOCK_KERNEL)
		return (struct dial_target){ .cid = vm->guest_cid };
	return (struct dial_target){ .socket = POD_FILE_VSOCK };
}

static int start_qemu(struct machine *m, const struct machine_input *in, const struct qemu_ends *q,
		      struct err *e)
{
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, ARGV_MAX);
	int r = argv_build(in->vm, &argv, e);
	if (r < 0)
		return r;
	struct spawn_plan plan = { .program = in->facts->qemu, .argv = argv.v };
	confine(&plan, in, QEMU_FILES_MAX, largest_file(in));
	if (in->facts->kvm_has_gid && in->vm->accel == VM_ACCEL_KVM)
		plan.groups[plan.n_groups++] = in->facts->kvm_gid;
	const struct spawn_fd fixed[] = {
		{ q->kernel, VM_FD_KERNEL }, { q->initrd, VM_FD_INITRD },
		{ q->secret, VM_FD_SECRET }, { q->console, VM_FD_CONSOLE },
		{ q->qmp, VM_FD_QMP },       { q->vsock, VM_FD_VSOCK },
	};
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		spawn_plan_fd(&plan, fixed[i].source, fixed[i].target);
	for (size_t i = 0; r == 0 && i < in->vm->n_disks; i++)
		r = spawn_plan_fd(&plan, in->disk_fds[i], in->vm->disks[i].fd);
	if (r == 0)
		r = process_start(&m->qemu, m->loop, &plan, on_qemu_end, m);
	return r < 0 ? err_sys(e, r, "QEMU: cannot start \"%s\"", in->facts->qemu) : 0;
}

int machine_start(struct machine *m, struct loop *loop, const struct machine_input *in,
		  const struct machine_ops *ops, void *ctx, struct err *e)
{
	*m = (struct machine){
		.loop = loop, .console_fd = -EBADF, .qmp_fd = -EBADF, .ops = ops, .ctx = ctx
	};
	qmp_init(&m->qmp);
	buf_init(&m->qmp_out, QMP_COMMAND_MAX);
	hotplug_init(&m->hotplug, loop, &m->qmp, &m->qmp_out, flush_qmp, m);
	CLEANUP(qemu_ends_deinit)
	struct qemu_ends q = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF };
	int r = console_init(&m->console, in->pod_fd);
	if (r < 0)
		err_sys(e, r, "pod directory: cannot write \"%s\"", POD_FILE_CONSOLE);
	if (r == 0)
		r = make_ends(m, in, &q, e);
	if (r == 0 && in->vm->vsock == VM_VSOCK_KERNEL)
		r = take_vhost(in, &q, e);
	else if (r == 0)
		r = start_vsock(m, in, &q, e);
	if (r == 0)
		r = start_qemu(m, in, &q, e);
	if (r < 0)
		machine_deinit(m);
	return r;
}

void machine_deinit(struct machine *m)
{
	if (!m->loop)
		return;
	process_deinit(&m->qemu);
	process_deinit(&m->vsock);
	loop_watch_remove(&m->console_watch);
	loop_watch_remove(&m->qmp_watch);
	m->console_fd = fd_close(m->console_fd);
	m->qmp_fd = fd_close(m->qmp_fd);
	unlinkat(m->console.dir_fd, POD_FILE_VSOCK, 0);
	unlinkat(m->console.dir_fd, POD_FILE_CID, 0);
	console_deinit(&m->console);
	hotplug_deinit(&m->hotplug);
	qmp_deinit(&m->qmp);
	buf_deinit(&m->qmp_out);
	m->loop = NULL;
}
