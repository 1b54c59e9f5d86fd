/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. husk-ns, a process beside ours, makes the namespaces and mounts; it has the
 * privileges for that, which the supervisor gives up. The agent listens on a socket in the pod
 * directory that is made here. A pod has ended when husk-ns has, which ends after the agent and
 * with it everything in the pod.
 */
#include "stage1/backend.h"
#include "stage1-ns/backend/files.h"
#include "stage1-ns/backend/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/image_mount.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/unix.h"
#include "lib/os/userns.h"
#include "lib/wire/stage1.h"
#include "stage1-ns/message.h"
#include "stage1/pod/console.h"
#include "stage1/pod/podfiles.h"
#include "stage1/pod/process.h"
#include "stage1/volumes/host_volume.h"

#define HELPER          "husk-ns"
#define HELPER_ARGS_MAX (10 + VOLUMES_MAX)                    /* ten, and volumes */
#define N_FDS           (HELPER_FD_IMAGE0 - HELPER_FD_SOCKET) /* beside those of images */

#define CONSOLE_READ_SIZE ((size_t)4096)
#define CONSOLE_READS     17 /* of a pipe's 64 KiB, and the end of the file */
#define MESSAGES_MAX      64 /* taken in one turn of the loop: as many as slots, twice */

struct plug {
	backend_done_fn done; /* NULL: nothing is waited for */
	void *ctx;
};

struct backend_pod {
	struct ns_options options;
	const struct backend_input *in; /* NULL: not prepared */
	struct process helper;
	int socket;
	struct loop_watch socket_watch;
	int agent; /* pidfd, for whoever wants to know what the pod costs; -EBADF: not up */
	int console_fd;
	struct loop_watch console_watch;
	struct console console;
	struct plug plugs[AGENT_APPS_MAX];
	struct loop *loop;
	const struct backend_events *events;
	void *ctx;
};

static struct backend_pod *create_pod(void)
{
	struct backend_pod *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->socket = p->agent = p->console_fd = -EBADF;
	p->socket_watch = p->console_watch = LOOP_WATCH_INIT;
	p->console = CONSOLE_INIT;
	return p;
}

static int take_option(struct backend_pod *p, const char *name, const char *value, struct err *e)
{
	return ns_options_take(&p->options, name, value, e);
}

static bool shares_users(const struct backend_pod *p)
{
	return p->options.users_of_host;
}

/* Without looking at the host. */
static int check_choices(const struct backend_pod *p, bool shares_net, bool open_paths,
			 struct err *e)
{
	if (p->options.users_of_host && geteuid() != 0)
		return err_set(e, -EPERM, "--userns=host: only root may start such pods");
	if (p->options.users_of_host && open_paths)
		return err_set(
			e, -EPERM,
			"--insecure-options=paths opens the host's kernel to its root in the "
			"pod (leave --userns=host away)");
	return shares_net && geteuid() != 0
		       ? err_set(e, -EOPNOTSUPP,
				 "a pod of others than root needs a network of its own (leave "
				 "--netns or --net=host away)")
		       : 0;
}

/* A file system that only somebody else's kernel should read. */
static int refuse_blocks(struct err *e)
{
	return err_set(e, -EOPNOTSUPP,
		       "volumes of kind=block need a VM (mount it and use kind=host, or leave "
		       "--stage1 away)");
}

static int check_pod(struct backend_pod *p, const struct backend_wishes *wishes, struct err *e)
{
	int r = wishes->block_volumes ? refuse_blocks(e)
				      : check_choices(p, wishes->shares_net, wishes->open_paths, e);
	if (r == 0 && !p->options.users_of_host)
		r = userns_check(e);
	return r == 0 && geteuid() != 0 ? image_check_fuse(e) : r;
}

static int make_scratch(int pod_fd, struct err *e)
{
	static const char *const dirs[] = { POD_FILE_SCRATCH, NS_DIR_APPS };
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(pod_fd, dirs[i], 0700) < 0 && errno != EEXIST)
			return err_sys(e, -errno, "pod directory: \"%s\"", dirs[i]);
	return 0;
}

static int prepare_pod(struct backend_pod *p, const struct backend_input *in,
		       struct agent_pod_setup *setup, struct err *e)
{
	for (size_t i = 0; i < in->manifest->volumes.n; i++)
		if (in->manifest->volumes.v[i].kind == VOLUME_BLOCK)
			return refuse_blocks(e);
	int r = check_choices(p, in->net.is_host || in->net.joined >= 0, in->open_paths, e);
	if (r < 0) /* husk-ns finds out about the rest */
		return r;
	p->in = in;
	setup->scratch_lun = in->cache_dir ? AGENT_SCRATCH_LUN : -1;
	return in->cache_dir ? make_scratch(in->pod_fd, e) : 0;
}

/* ---- what happens ---- */

static void on_console(void *ctx, uint32_t events)
{
	(void)events;
	struct backend_pod *p = ctx;
	char chunk[CONSOLE_READ_SIZE];
	ssize_t n = read(p->console_fd, chunk, sizeof(chunk));
	if (n > 0)
		console_feed(&p->console, chunk, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		loop_watch_remove(&p->console_watch);
}

static void finish_plug(struct plug *plug, const char *why)
{
	struct err e = ERR_INIT;
	backend_done_fn done = plug->done;
	plug->done = NULL;
	if (!done)
		return;
	if (why[0])
		err_set(&e, -EIO, "%s", why);
	done(plug->ctx, why[0] ? &e : NULL, false);
}

/* Takes @fd over. */
static void take_message(struct backend_pod *p, struct message *m, int fd)
{
	cleanup_fd int owned = fd;
	m->text[MESSAGE_TEXT_MAX] = '\0';
	if (m->kind == MESSAGE_UP) {
		fd_replace(&p->agent, TAKE_FD(owned));
		p->events->reached(p->ctx, "namespaces made");
		p->events->spoke(p->ctx);
	} else if (m->kind == MESSAGE_DONE && m->slot >= 0 && m->slot < AGENT_APPS_MAX) {
		finish_plug(&p->plugs[m->slot], m->text);
	}
}

static void take_messages(struct backend_pod *p)
{
	struct message m;
	int fds[UNIX_FDS_MAX], r = 0;
	size_t len = sizeof(m), n;
	for (int i = 0; i < MESSAGES_MAX && r == 0 && len == sizeof(m); i++) {
		r = unix_recv_fds(p->socket, &m, sizeof(m), fds, &len, &n);
		if (r < 0 || len != sizeof(m))
			break;
		take_message(p, &m, n > 0 ? fds[0] : -EBADF);
		for (size_t k = 1; k < n; k++)
			fd_close(fds[k]);
	}
	if (r < 0 ? r != -EAGAIN && r != -EINTR : len != sizeof(m))
		loop_watch_remove(&p->socket_watch);
}

static void on_socket(void *ctx, uint32_t events)
{
	(void)events;
	take_messages(ctx);
}

/* It says why in its first line, unless it was killed. */
static void on_helper_end(void *ctx, struct process *process)
{
	struct backend_pod *p = ctx;
	struct err why = ERR_INIT;
	char how[PROCESS_HOW_MAX];
	take_messages(p);
	loop_watch_remove(&p->socket_watch);
	for (int i = 0; i < CONSOLE_READS && p->console_watch.loop; i++)
		on_console(p, 0);
	loop_watch_remove(&p->console_watch);
	const char *line = logtail_first_line(&process->errors);
	process_describe_end(process, how, sizeof(how));
	if (p->agent >= 0)
		err_set(&why, -EIO, "the pod ended unexpectedly: %s (see %s in the pod directory)",
			*line ? line : how, POD_FILE_CONSOLE);
	else
		err_set(&why, -EIO, "%s", *line ? line : how);
	p->events->ended(p->ctx, &why);
}

/* ---- start ---- */

static int make_argv(const struct backend_pod *p, struct strv *argv)
{
	int r = strv_add(argv, HELPER);
	if (r == 0)
		r = strv_addf(argv, "--uuid=%s", p->in->uuid);
	if (r == 0)
		r = strv_addf(argv, "--images=%zu", p->in->manifest->n_apps);
	if (r == 0 && p->in->cache_dir)
		r = strv_add(argv, "--scratch");
	if (r == 0 && !p->options.users_of_host)
		r = strv_add(argv, "--userns");
	if (r == 0 && p->options.limits.memory_max)
		r = strv_addf(argv, "--memory=%" PRId64, p->options.limits.memory_max);
	if (r == 0 && p->options.limits.cpu_millis)
		r = strv_addf(argv, "--cpu-millis=%" PRId64, p->options.limits.cpu_millis);
	if (r == 0 && p->options.limits.pids_max)
		r = strv_addf(argv, "--pids=%" PRId64, p->options.limits.pids_max);
	if (r == 0 && *p->in->cgroup_parent)
		r = strv_addf(argv, "--cgroup-parent=%s", p->in->cgroup_parent);
	if (r == 0 && p->in->net.is_host)
		r = strv_add(argv, "--net=host");
	if (r == 0 && p->in->net.joined >= 0)
		r = strv_add(argv, "--net=join");
	if (r == 0 && p->in->net.socket >= 0)
		r = strv_add(argv, "--net=connect");
	return r == 0 ? host_volumes_args(p->in->manifest, "--volume=", argv) : r;
}

/* The lock belongs to the open file: the agent keeps it, and helpers of its. */
static int open_lock(const struct backend_pod *p)
{
	int fd = openat(p->in->pod_fd, NS_FILE_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int r = fd < 0 ? -errno : lock_try_exclusive(fd);
	if (r == 0)
		return fd;
	fd_close(fd);
	return r < 0 ? r : -EBUSY;
}

/* What is written there never blocks: a reader that is gone, or slow, loses lines. */
static int open_console(struct backend_pod *p)
{
	int fds[2];
	int r = console_init(&p->console, p->in->pod_fd);
	if (r < 0)
		return r;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	p->console_fd = fds[0];
	cleanup_fd int writer = fds[1];
	r = loop_watch_add(p->loop, &p->console_watch, fds[0], EPOLLIN, on_console, p);
	return r < 0 ? r : TAKE_FD(writer);
}

static int plan_fds(struct spawn_plan *plan, const int *fds, const int *images, size_t n)
{
	int r = 0;
	for (int i = 0; r == 0 && i < N_FDS; i++)
		if (fds[i] >= 0)
			r = spawn_plan_fd(plan, fds[i], HELPER_FD_SOCKET + i);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = spawn_plan_fd(plan, images[i], HELPER_FD_IMAGE0 + (int)i);
	return r;
}

static int start_helper(struct backend_pod *p, const int *fds, const int *images, struct err *e)
{
	char program[PATH_MAX];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, HELPER_ARGS_MAX);
	int r = path_from_self(HELPER, program, sizeof(program));
	if (r < 0)
		return err_set(e, r, HELPER " is not beside stage1's run (install husk again)");
	r = make_argv(p, &argv);
	struct spawn_plan plan = { .program = program, .argv = argv.v };
	if (r == 0)
		r = plan_fds(&plan, fds, images, p->in->manifest->n_apps);
	if (r == 0)
		r = process_start_keeper(&p->helper, p->loop, &plan, on_helper_end, p);
	return r < 0 ? err_sys(e, r, "cannot start \"%s\"", program) : 0;
}

static int open_scratch(const struct backend_pod *p)
{
	int fd = openat(p->in->pod_fd, NS_DIR_APPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_socket(struct backend_pod *p)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	p->socket = pair[0];
	return pair[1];
}

/* The descriptors of the helper, by their numbers there. */
static int make_sources(struct backend_pod *p, int fds[N_FDS], struct err *e)
{
	static const char *const names[N_FDS] = { "socket",           "\"" NS_FILE_SOCKET "\"",
						  "secret",           "\"" NS_FILE_LOCK "\"",
						  "console log",      "\"" NS_DIR_APPS "\"",
						  "network namespace" };
	const struct backend_net *net = &p->in->net;
	fds[0] = open_socket(p);
	fds[HELPER_FD_LISTEN - HELPER_FD_SOCKET] = unix_listen(NS_FILE_SOCKET, 0600);
	fds[HELPER_FD_SECRET - HELPER_FD_SOCKET] = podfiles_pass_secret(p->in->secret);
	fds[HELPER_FD_LOCK - HELPER_FD_SOCKET] = open_lock(p);
	fds[HELPER_FD_CONSOLE - HELPER_FD_SOCKET] = open_console(p);
	if (p->in->cache_dir)
		fds[HELPER_FD_SCRATCH - HELPER_FD_SOCKET] = open_scratch(p);
	if (net->joined >= 0 || net->socket >= 0)
		fds[HELPER_FD_NETNS - HELPER_FD_SOCKET] =
			fcntl(net->joined >= 0 ? net->joined : net->socket, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < N_FDS; i++)
		if (fds[i] < 0 && fds[i] != -EBADF)
			return err_sys(e, fds[i], "pod directory: %s", names[i]);
	return 0;
}

static int start_pod(struct backend_pod *p, struct loop *loop, const int *images,
		     const struct backend_events *events, void *ctx, struct err *e)
{
	int fds[N_FDS] = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF };
	p->loop = loop;
	p->events = events;
	p->ctx = ctx;
	int r = make_sources(p, fds, e);
	if (r == 0)
		r = start_helper(p, fds, images, e);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	if (r < 0)
		return r;
	r = fd_set_nonblock(p->socket, true);
	if (r == 0)
		r = loop_watch_add(loop, &p->socket_watch, p->socket, EPOLLIN, on_socket, p);
	return r < 0 ? err_sys(e, r, "socket") : 0;
}

/* ---- while it runs ---- */

static int ask(struct backend_pod *p, enum message_kind kind, int slot, int fd,
	       backend_done_fn done, void *ctx)
{
	cleanup_fd int owned = fd;
	const struct message m = { .kind = kind, .slot = slot };
	size_t sent;
	if (p->agent < 0)
		return -ENOTCONN;
	if (p->plugs[slot].done)
		return -E2BIG;
	int r = unix_send_fds(p->socket, &m, sizeof(m), &owned, owned < 0 ? 0 : 1, &sent);
	if (r == 0)
		p->plugs[slot] = (struct plug){ done, ctx };
	return r;
}

static int plug_image(struct backend_pod *p, int slot, int fd, backend_done_fn done, void *ctx)
{
	return ask(p, MESSAGE_PLUG, slot, fd, done, ctx);
}

static int unplug_image(struct backend_pod *p, int slot, backend_done_fn done, void *ctx)
{
	return ask(p, MESSAGE_UNPLUG, slot, -EBADF, done, ctx);
}

static void kill_pod(struct backend_pod *p)
{
	shutdown(p->socket, SHUT_WR); /* how it ended can still be told */
}

static const char *last_words(const struct backend_pod *p)
{
	return p->console.last;
}

static void free_pod(struct backend_pod *p)
{
	if (!p)
		return;
	process_deinit(&p->helper);
	loop_watch_remove(&p->socket_watch);
	loop_watch_remove(&p->console_watch);
	fd_close(p->socket);
	fd_close(p->agent);
	fd_close(p->console_fd);
	console_deinit(&p->console);
	if (p->in)
		unlinkat(p->in->pod_fd, NS_FILE_SOCKET, 0);
	free(p);
}

const struct backend flavor_backend = {
	.flavor = "ns",
	.in_netns = true,
	.options = ns_option_names,
	.route = &flavor_route,
	.shares_users = shares_users,
	.create = create_pod,
	.option = take_option,
	.check = check_pod,
	.prepare = prepare_pod,
	.start = start_pod,
	.plug = plug_image,
	.unplug = unplug_image,
	.kill = kill_pod,
	.drop = kill_pod,
	.last_words = last_words,
	.free = free_pod,
};
