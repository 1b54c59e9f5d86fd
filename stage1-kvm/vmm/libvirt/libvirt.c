/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. husk-libvirt, a process beside ours, creates the domain and tells what
 * becomes of it (stage1-kvm/vmm/libvirt/message.h). QEMU is libvirt's child, not ours. It connects
 * to the console's socket here, which says what process it is: by a pidfd it is killed, and its end
 * is known, whatever libvirt and its daemon do. The machine has ended when QEMU has and the helper
 * too, which libvirt lets know why; so nothing of the domain is left then. If either does not
 * follow the other, it is made to.
 */
#include "stage1-kvm/vmm/libvirt/libvirt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vmm/disk_jobs.h"
#include "stage1-kvm/vmm/libvirt/domain_dir.h"
#include "stage1-kvm/vmm/libvirt/domain_xml.h"
#include "stage1-kvm/vmm/libvirt/message.h"
#include "stage1-kvm/vmm/libvirt/uri.h"
#include "stage1/pod/process.h"

#define HELPER "husk-libvirt"

/* One for each disk and network device, and ten others. */
#define HELPER_ARGS_MAX (VM_DISKS_MAX + NET_INTERFACES_MAX + 10)

/* By these libvirt finds the daemon of a user, or starts it. */
static const char *const where_user_is[] = { "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
					     "XDG_CACHE_HOME" };

/* For the helper to end once QEMU has: libvirt notices at once, but cleans up. */
#define FOLLOW_MS INT64_C(5000)

/* Taken in one turn of the loop: more than a socket holds, and a flood leaves others their turn. */
#define MESSAGES_MAX 64

/* For a daemon to accept a connection, which takes milliseconds. */
#define CHECK_MS 10000

/* For a disk to be there or gone: libvirt itself waits 5 seconds for the guest. */
#define PLUG_MS INT64_C(30000)

struct vmm {
	struct loop *loop;
	struct process helper;
	int socket;
	struct loop_watch socket_watch;
	int listener; /* for QEMU to connect its console */
	struct loop_watch listener_watch;
	int qemu; /* pidfd; -EBADF until it has connected */
	struct loop_watch qemu_watch;
	bool qemu_ended, helper_ended;
	struct loop_timer follow;
	bool is_up;
	char how[MESSAGE_TEXT_MAX + 1]; /* what the helper said last, or "" */
	char dir[DOMAIN_DIR_MAX + 1];
	struct disk_jobs plugs; /* the helper does one at a time */
	const struct vmm_events *events;
	void *ctx;
};

/* ---- the end ---- */

static bool has_qemu(const struct vmm *m)
{
	return m->qemu >= 0 && !m->qemu_ended;
}

static void on_follow(void *ctx);

/* Whoever is left has a while to end by itself. */
static void expect_end(struct vmm *m)
{
	if (!m->follow.loop)
		loop_timer_arm(m->loop, &m->follow, clock_monotonic_ns() + FOLLOW_MS * NS_PER_MS,
			       on_follow, m);
}

static void kill_machine(struct vmm *m)
{
	/* The helper follows, and so does the domain. Without QEMU it has things to undo. */
	if (has_qemu(m)) {
		syscall(SYS_pidfd_send_signal, m->qemu, SIGKILL, NULL, 0);
		return;
	}
	shutdown(m->socket, SHUT_RDWR);
	expect_end(m);
}

static void on_follow(void *ctx)
{
	struct vmm *m = ctx;
	process_kill(&m->helper);
	if (has_qemu(m))
		syscall(SYS_pidfd_send_signal, m->qemu, SIGKILL, NULL, 0);
}

static void check_end(struct vmm *m)
{
	char how[PROCESS_HOW_MAX];
	if (!m->helper_ended || has_qemu(m)) {
		expect_end(m);
		return;
	}
	loop_timer_disarm(&m->follow);
	domain_dir_remove(m->dir);
	if (!m->how[0])
		process_describe_end(&m->helper, how, sizeof(how));
	m->events->ended(m->ctx, m->how[0] ? m->how : how, m->is_up);
}

static void on_qemu_end(void *ctx, uint32_t events)
{
	(void)events;
	struct vmm *m = ctx;
	loop_watch_remove(&m->qemu_watch);
	m->qemu_ended = true;
	check_end(m);
}

static void on_console(void *ctx, uint32_t events);
static void take_messages(struct vmm *m);

static void on_helper_end(void *ctx, struct process *p)
{
	(void)p;
	struct vmm *m = ctx;
	take_messages(m);
	m->helper_ended = true;
	if (m->listener >= 0)
		on_console(m, 0); /* QEMU may have connected just now */
	if (has_qemu(m))
		kill_machine(m); /* whoever was to watch over it is gone */
	check_end(m);
}

/* ---- the console ---- */

/*
 * Who connects first is taken for QEMU: it is the user that libvirt runs it as, who with a daemon
 * is that of all its VMs. One in a PID namespace that we do not see has number 0 here. Whoever has
 * not hung up when there is a pidfd had its number all the time.
 */
static int watch_qemu(struct vmm *m, int console)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(console, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.pid == 0)
		return -ESRCH;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (pidfd < 0)
		return -errno;
	struct pollfd here = { .fd = console };
	if (poll(&here, 1, 0) != 0)
		return -ECONNRESET;
	int r = loop_watch_add(m->loop, &m->qemu_watch, pidfd, EPOLLIN, on_qemu_end, m);
	if (r < 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	else
		m->qemu = TAKE_FD(pidfd);
	return r;
}

static void on_console(void *ctx, uint32_t events)
{
	(void)events;
	struct vmm *m = ctx;
	int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	loop_watch_remove(&m->listener_watch); /* virsh console gets no connection */
	fd_replace(&m->listener, -EBADF);
	int r = watch_qemu(m, fd);
	if (r == -ECONNRESET) {
		fd_close(fd); /* it has ended already: the helper tells why */
		return;
	}
	if (r < 0) {
		fd_close(fd);
		snprintf(m->how, sizeof(m->how),
			 "cannot watch QEMU's process: %s (libvirt's daemon and husk have to see "
			 "the same processes)",
			 strerror(-r));
		process_kill(&m->helper);
		return;
	}
	m->events->console(m->ctx, fd);
}

/* ---- disks ---- */

static void finish_plug(struct vmm *m, const char *why, bool left)
{
	struct err e = ERR_INIT;
	if (why[0])
		err_set(&e, -EIO, "%s", why);
	disk_jobs_finish(&m->plugs, why[0] ? &e : NULL, left);
}

static void on_plug_limit(void *ctx)
{
	finish_plug(ctx, "libvirt does not answer", true);
}

static int send_plug(const struct vmm *m, const struct disk_job *job)
{
	struct message msg = { .kind = job->remove ? MESSAGE_UNPLUG : MESSAGE_PLUG,
			       .lun = job->lun };
	size_t sent;
	int r = job->remove ? 0 : domain_dir_path_of(job->fd, msg.text);
	return r < 0 ? r
		     : unix_send_fds(m->socket, &msg, sizeof(msg), &job->fd, job->remove ? 0 : 1,
				     &sent);
}

static void begin_plug(void *ctx)
{
	struct vmm *m = ctx;
	const struct disk_job *job = &m->plugs.queue[0];
	int r = send_plug(m, job);
	if (r < 0)
		finish_plug(m, strerror(-r), job->remove);
}

static const struct disk_jobs_ops plug_ops = { begin_plug, on_plug_limit, PLUG_MS };

static int plug_disk(struct vmm *m, int lun, int fd, backend_done_fn done, void *ctx)
{
	const struct disk_job job = { .lun = lun, .fd = fd, .done = done, .ctx = ctx };
	if (m->is_up)
		return disk_jobs_add(&m->plugs, &job);
	fd_close(fd);
	return -ENOTCONN;
}

static int unplug_disk(struct vmm *m, int lun, backend_done_fn done, void *ctx)
{
	const struct disk_job job = {
		.remove = true, .lun = lun, .fd = -EBADF, .done = done, .ctx = ctx
	};
	return m->is_up ? disk_jobs_add(&m->plugs, &job) : -ENOTCONN;
}

/* ---- messages ---- */

static void take_message(struct vmm *m, struct message *msg)
{
	msg->text[MESSAGE_TEXT_MAX] = '\0';
	str_make_printable(msg->text);
	switch (msg->kind) {
	case MESSAGE_UP:
		if (!m->is_up)
			m->events->up(m->ctx);
		m->is_up = true;
		break;
	case MESSAGE_DONE:
		if (m->plugs.n > 0 && m->plugs.queue[0].lun == msg->lun)
			finish_plug(m, msg->text, msg->left != 0);
		break;
	case MESSAGE_DISK_ERROR:
		m->events->disk_error(m->ctx);
		break;
	case MESSAGE_SUSPENDED:
	case MESSAGE_RESUMED:
		m->events->suspended(m->ctx, msg->kind == MESSAGE_SUSPENDED);
		break;
	case MESSAGE_ENDED:
		if (!m->how[0])
			memcpy(m->how, msg->text, sizeof(m->how));
		break;
	default:
		kill_machine(m); /* it talks nonsense */
		break;
	}
}

static void take_messages(struct vmm *m)
{
	struct message msg;
	ssize_t n = sizeof(msg);
	for (int i = 0; i < MESSAGES_MAX && n == sizeof(msg); i++) {
		n = recv(m->socket, &msg, sizeof(msg), MSG_DONTWAIT);
		if (n == sizeof(msg))
			take_message(m, &msg);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		loop_watch_remove(&m->socket_watch);
}

static void on_socket(void *ctx, uint32_t events)
{
	(void)events;
	take_messages(ctx);
}

/* ---- start ---- */

static int find_helper(char ret[PATH_MAX], struct err *e)
{
	int r = path_from_self(HELPER, ret, PATH_MAX);
	return r < 0 ? err_set(e, -ENOENT,
			       "--vmm=libvirt: " HELPER " is not beside stage1's run (install husk "
			       "with libvirt, or give --vmm=qemu)")
		     : 0;
}

static int check_uri(const char *uri, struct err *e)
{
	if (strcmp(uri, LIBVIRT_URI_SESSION) == 0 || geteuid() == 0)
		return 0;
	return err_set(e, -EPERM,
		       "--libvirt-uri=%s: needs root (give --libvirt-uri=" LIBVIRT_URI_SESSION ")",
		       uri);
}

/* The arguments that a helper has for whatever it does. */
static int make_argv(struct strv *argv, const char *uri)
{
	int r = strv_add(argv, HELPER);
	if (r == 0)
		r = strv_addf(argv, "--uri=%s", uri);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(where_user_is); i++) {
		const char *value = getenv(where_user_is[i]);
		if (value)
			r = strv_addf(argv, "--env=%s=%s", where_user_is[i], value);
	}
	return r;
}

static int run_check(const char *uri, int errors, struct err *e)
{
	char program[PATH_MAX];
	static char *const no_environment[] = { NULL };
	pid_t pid = -1;
	cleanup_fd int pidfd = -EBADF;
	int status = -1;
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, HELPER_ARGS_MAX);
	int r = find_helper(program, e);
	if (r < 0)
		return r;
	r = make_argv(&argv, uri);
	if (r == 0)
		r = strv_add(&argv, "--check");
	struct spawn_plan plan = {
		.program = program, .argv = argv.v, .envp = no_environment, .die_with_parent = true
	};
	if (r == 0)
		r = spawn_plan_fd(&plan, errors, 2);
	if (r == 0)
		r = spawn(&plan, &pid, &pidfd);
	if (r < 0)
		return err_sys(e, r, "cannot start \"%s\"", program);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	bool ended = poll(&end, 1, CHECK_MS) == 1;
	if (!ended)
		kill(pid, SIGKILL);
	r = spawn_wait(pid, &status);
	if (r < 0 || !ended)
		return err_set(e, -ETIMEDOUT,
			       "libvirt: %s: it does not answer (restart its daemon)", uri);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int check_libvirt(const char *uri, bool may_start, struct err *e)
{
	char line[MESSAGE_TEXT_MAX + 1];
	size_t len = 0;
	int r = check_uri(uri, e);
	if (r < 0)
		return r;
	cleanup_fd int errors = memfd_create("husk-errors", MFD_CLOEXEC);
	if (errors < 0)
		return err_sys(e, -errno, "libvirt");
	/* Without connecting, it is seen whether the library is there. */
	bool connects = may_start || strcmp(uri, LIBVIRT_URI_SESSION) != 0;
	r = run_check(connects ? uri : LIBVIRT_URI_EMBED, errors, e);
	if (r != -EIO)
		return r;
	if (fd_read_at(errors, line, sizeof(line) - 1, 0, &len) < 0)
		len = 0;
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	str_make_printable(line);
	return err_set(e, r, "%s", line[0] ? line : "libvirt: its library does not load");
}

/* Bound and listening in the directory of the domain. */
static int listen_in(const char *dir, const char *name, struct err *e)
{
	char path[DOMAIN_DIR_MAX + 32];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = unix_listen(path, 0600);
	return fd < 0 ? err_sys(e, fd, "libvirt: cannot listen on \"%s\"", path) : fd;
}

/* Called before start(), and so the first to need the directory. */
static int make_vsock_ends(const struct vmm_input *in, int *ret_device, int *ret_vmm, struct err *e)
{
	char dir[DOMAIN_DIR_MAX + 1];
	int r = domain_dir_path(in->pod_fd, in->uuid, dir, e);
	if (r == 0)
		r = domain_dir_make(dir, e);
	if (r == 0) {
		r = listen_in(dir, DOMAIN_FILE_VSOCK, e);
		if (r < 0)
			domain_dir_remove(dir);
	}
	if (r < 0)
		return r;
	*ret_device = r;
	*ret_vmm = -EBADF;
	return 0;
}

static int prepare_dir(struct vmm *m, const struct vmm_input *in, struct err *e)
{
	int r = domain_dir_path(in->pod_fd, in->uuid, m->dir, e);
	if (r == 0 && in->vm->vsock != VM_VSOCK_USER)
		r = domain_dir_make(m->dir, e);
	if (r == 0)
		r = listen_in(m->dir, DOMAIN_FILE_CONSOLE, e);
	if (r < 0)
		return r;
	m->listener = r;
	r = loop_watch_add(m->loop, &m->listener_watch, m->listener, EPOLLIN, on_console, m);
	return r < 0 ? err_sys(e, r, "VM: cannot make its console") : 0;
}

/* The domain as text, in a file without a name. */
static int make_xml(const struct vmm *m, const struct vmm_input *in, struct err *e)
{
	const struct domain_names names = { .uuid = in->uuid,
					    .pod = in->name,
					    .dir = m->dir,
					    .emulator = in->program,
					    .labels = geteuid() == 0 };
	cleanup_buf struct buf xml;
	buf_init(&xml, DOMAIN_XML_MAX);
	int r = domain_xml(in->vm, &names, &xml, e);
	if (r < 0)
		return r;
	cleanup_fd int fd = memfd_create("husk-domain", MFD_CLOEXEC);
	r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&xml), buf_len(&xml));
	return r < 0 ? err_sys(e, r, "libvirt: domain") : TAKE_FD(fd);
}

static int add_arguments(struct strv *argv, const struct vmm *m, const struct vmm_input *in)
{
	int r = make_argv(argv, in->uri);
	if (r == 0)
		r = strv_addf(argv, "--dir=%s", m->dir);
	if (r == 0 && in->cache_dir)
		r = strv_addf(argv, "--cache=%s", in->cache_dir);
	if (r == 0)
		r = strv_addf(argv, "--uid=%u", in->unprivileged_ids ? in->uid : geteuid());
	if (r == 0 && in->vm->accel == VM_ACCEL_KVM)
		r = strv_add(argv, "--kvm");
	for (size_t i = 0; r == 0 && i < in->vm->n_disks; i++)
		r = strv_addf(argv, "--disk=%d:%s", in->vm->disks[i].lun,
			      in->vm->disks[i].read_only ? "ro" : "rw");
	for (size_t i = 0; r == 0 && i < in->vm->n_nics; i++) {
		const struct vm_nic *nic = &in->vm->nics[i];
		char mac[NET_MAC_TEXT_MAX + 1];
		net_mac_format(nic->mac, mac);
		r = strv_addf(argv, "--nic=%s/%u/%zu/%d/%d", mac, nic->mtu, nic->n_queues,
			      nic->vhost, nic->stream);
	}
	return r;
}

static int pass_taps(struct spawn_plan *plan, const struct vm *vm, const struct backend_tap *taps)
{
	int r = 0;
	for (int i = 0; i < (int)vm->n_nics; i++) {
		for (int q = 0; r == 0 && q < (int)vm->nics[i].n_queues; q++) {
			r = spawn_plan_fd(plan, taps[i].queues[q], HELPER_FD_TAP(i, q));
			if (r == 0 && vm->nics[i].vhost)
				r = spawn_plan_fd(plan, taps[i].vhosts[q], HELPER_FD_VHOST(i, q));
		}
	}
	return r;
}

static int pass_descriptors(struct spawn_plan *plan, const struct vmm_input *in, int socket,
			    int xml)
{
	const struct vmm_sources *s = &in->sources;
	const struct spawn_fd fds[] = {
		{ socket, HELPER_FD_SOCKET },    { xml, HELPER_FD_XML },
		{ s->kernel, HELPER_FD_KERNEL }, { s->initrd, HELPER_FD_INITRD },
		{ s->secret, HELPER_FD_SECRET },
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fds); i++)
		r = spawn_plan_fd(plan, fds[i].source, fds[i].target);
	for (size_t i = 0; r == 0 && i < in->vm->n_disks; i++)
		r = spawn_plan_fd(plan, s->disks[i], HELPER_FD_DISK0 + (int)i);
	return r == 0 ? pass_taps(plan, in->vm, s->taps) : r;
}

static int start_helper(struct vmm *m, const struct vmm_input *in, int socket, struct err *e)
{
	char program[PATH_MAX];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, HELPER_ARGS_MAX);
	cleanup_fd int xml = make_xml(m, in, e);
	if (xml < 0)
		return xml;
	int r = find_helper(program, e);
	if (r < 0)
		return r;
	r = add_arguments(&argv, m, in);
	struct spawn_plan plan = { .program = program, .argv = argv.v };
	if (r == 0)
		r = pass_descriptors(&plan, in, socket, xml);
	if (r == 0)
		r = process_start(&m->helper, m->loop, &plan, on_helper_end, m);
	return r < 0 ? err_sys(e, r, "libvirt: cannot start \"%s\"", program) : 0;
}

static int start_domain(struct vmm *m, const struct vmm_input *in, struct err *e)
{
	int ends[2];
	int r = check_uri(in->uri, e);
	if (r == 0)
		r = prepare_dir(m, in, e);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, -errno, "libvirt");
	cleanup_fd int theirs = ends[1];
	m->socket = ends[0];
	r = fd_set_nonblock(m->socket, true);
	if (r == 0)
		r = loop_watch_add(m->loop, &m->socket_watch, m->socket, EPOLLIN, on_socket, m);
	return r < 0 ? err_sys(e, r, "libvirt") : start_helper(m, in, theirs, e);
}

/* It has ended when this returns, unless the kernel does not let it. */
static void kill_qemu(struct vmm *m)
{
	struct pollfd end = { .fd = m->qemu, .events = POLLIN };
	kill_machine(m);
	poll(&end, 1, FOLLOW_MS);
}

static void free_libvirt(struct vmm *m)
{
	if (!m)
		return;
	if (m->listener >= 0)
		on_console(m, 0); /* as above */
	if (has_qemu(m))
		kill_qemu(m);
	process_deinit(&m->helper);
	loop_timer_disarm(&m->follow);
	disk_jobs_deinit(&m->plugs);
	loop_watch_remove(&m->socket_watch);
	loop_watch_remove(&m->listener_watch);
	loop_watch_remove(&m->qemu_watch);
	fd_close(m->socket);
	fd_close(m->listener);
	fd_close(m->qemu);
	if (m->dir[0])
		domain_dir_remove(m->dir);
	free(m);
}

static int start_libvirt(struct loop *loop, const struct vmm_input *in,
			 const struct vmm_events *events, void *ctx, struct vmm **ret,
			 struct err *e)
{
	struct vmm *m = calloc(1, sizeof(*m));
	if (!m)
		return err_sys(e, -ENOMEM, "VM");
	m->loop = loop;
	m->socket = m->listener = m->qemu = -EBADF;
	m->socket_watch = m->listener_watch = m->qemu_watch = LOOP_WATCH_INIT;
	m->events = events;
	m->ctx = ctx;
	disk_jobs_init(&m->plugs, loop, &plug_ops, m);
	int r = start_domain(m, in, e);
	if (r < 0)
		free_libvirt(m);
	else
		*ret = m;
	return r;
}

const struct vmm_driver libvirt_driver = {
	.name = "libvirt",
	.opens_vhost = true,
	.only_q35 = true,
	.check = check_libvirt,
	.vsock_ends = make_vsock_ends,
	.start = start_libvirt,
	.plug = plug_disk,
	.unplug = unplug_disk,
	.kill = kill_machine,
	.free = free_libvirt,
};
