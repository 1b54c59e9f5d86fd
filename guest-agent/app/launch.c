/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent forks a child into the app's PID namespace and control group (one of version 1 it
 * enters before anything else); the child takes the steps of become_app() in that order and
 * executes the program. Nothing in it returns to the agent's code. It talks over two pipes, closed
 * by execve(2):
 *
 *   child                                       agent
 *   mounts the root directory, enters it
 *   struct fault, code 0, or why not      -->   app.add is answered
 *   waits                                 <--   one byte: app.start
 *   mounts the rest, drops privileges, execs
 *   struct fault: why that failed         -->   app.exited has its text
 *
 * The byte may already be there when the child looks for it, so that an add with its start behind
 * it costs one process and no waiting. Privileges go last, since the mounts need them.
 *
 * A further process in a running app joins the mount namespace of the app's process instead of
 * making one, waits for nothing, and says only why it failed. From there on both take the same
 * steps: what confines the app confines it, too. Until its execve(2) the child is not dumpable, as
 * the agent is not, which keeps the app's processes, some of them root with the same capabilities,
 * out of its memory and descriptors (ptrace(2), "Ptrace access mode checking"). A change of user
 * makes it what /proc/sys/fs/suid_dumpable says, which apps cannot write.
 *
 * An app with a post-stop handler is a child of that process, which stays what it is to run the
 * handler in the end (handler.h).
 */
#include "guest-agent/app/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/app/appfs.h"
#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/confine.h"
#include "guest-agent/app/execute.h"
#include "guest-agent/app/handler.h"
#include "guest-agent/app/pidns.h"
#include "guest-agent/app/protect.h"
#include "guest-agent/app/volumes.h"
#include "guest-agent/log.h"
#include "lib/os/fd.h"

_Static_assert(sizeof(struct fault) <= PIPE_BUF, "a fault is one atomic write");

static int sys_failed(struct fault *f, const char *what)
{
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot %s", what);
}

/* Installs the standard streams and closes what else the agent had open, but for @keep. */
static int take_stdio(const int stdio[3], const int keep[4], struct fault *f)
{
	for (int i = 0; i < 3; i++)
		if (dup2(stdio[i], i) < 0)
			return sys_failed(f, "set up the standard streams");
	return fd_close_others(keep, 4) < 0 ? sys_failed(f, "close descriptors") : 0;
}

/*
 * A pipe or terminal becomes the app's: else a user without privileges could not open /dev/stdout.
 */
static int own_stdio(bool with_tty, const struct ids *ids, struct fault *f)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		if (fstat(i, &st) < 0)
			return sys_failed(f, "look at the standard streams");
		bool is_foreign = st.st_uid != ids->uid || st.st_gid != ids->gid;
		if (is_foreign && (S_ISFIFO(st.st_mode) || with_tty) &&
		    fchown(i, ids->uid, ids->gid) < 0)
			return sys_failed(f, "give the standard streams away");
	}
	/* 1: also if a process of the app was quicker to make the terminal its own. */
	if (setsid() < 0 || (with_tty && ioctl(0, TIOCSCTTY, 1) < 0))
		return sys_failed(f, "create a session");
	return 0;
}

static void reset_signals(void)
{
	for (int s = 1; s <= AGENT_SIGNAL_MAX; s++)
		signal(s, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int mount_root(const struct launch *l, struct fault *f)
{
	const struct agent_app_add *spec = l->spec;
	const struct agent_mount *volume = agent_mounts_root(&spec->mounts);
	if (!volume)
		return rootfs_mount_app(l->rootfs, spec->app, spec->lun, &l->names, f);
	int r = rootfs_make_app(l->rootfs, spec->app, f);
	return r == 0 ? volumes_mount_root(l->rootfs, spec->app, volume,
					   l->confinement->read_only_root, f)
		      : r;
}

static int make_root(const struct launch *l, struct ids *ret_ids, struct fault *f)
{
	const struct agent_app_add *spec = l->spec;
	int r = l->mounted ? 0 : mount_root(l, f);
	if (r == 0)
		r = rootfs_resolve_ids(l->rootfs, spec->app, spec->process.user,
				       spec->process.group, ret_ids, f);
	if (r != 0 && !l->mounted)
		rootfs_discard_app(l->rootfs, spec->app);
	return r;
}

static const char *cwd_of(const struct agent_process *p)
{
	return p->cwd[0] ? p->cwd : "/";
}

/*
 * A process with a file system of its own gets it @read_only when all that must be made in there
 * has been made. Signals end it from here on, and @mask is its umask.
 */
static int launch_settle(const struct agent_process *p, bool read_only, mode_t mask,
			 struct fault *f)
{
	int r = appfs_chdir(cwd_of(p), !p->cwd_is_there, f);
	if (r == 0 && read_only)
		r = appfs_make_read_only(f);
	umask(mask);
	reset_signals();
	return r;
}

/* The last steps, in the app's root: what is privileged until here is not behind them. */
static int become(const char *app, const struct agent_process *p, const struct confinement *c,
		  const struct ids *ids, struct fault *f)
{
	struct execution x;
	int r = execute_prepare(app, p, ids, cwd_of(p), &x, f);
	if (r == 0)
		r = confine(c, ids, f);
	return r == 0 ? execute(&x, f) : r;
}

/* What runs before the app, and who runs what comes after it. */
static int handle_events(const struct launch *l, int say_fd, struct fault *f)
{
	const struct agent_app_add *spec = l->spec;
	struct handler h = { .app = spec->app,
			     .name = "pre-start",
			     .exec = &spec->pre_start,
			     .process = &spec->process,
			     .confinement = l->confinement,
			     .cwd = cwd_of(&spec->process) };
	int r = handler_run(&h, f);
	if (r != 0)
		return r;
	h.name = "post-stop";
	h.exec = &spec->post_stop;
	return handler_stay_behind(&h, say_fd, f);
}

/* What the process of an app knows and holds on its way. */
struct way {
	struct ids ids;
	struct appfs_plan plan;
	struct volume_fds volumes;
};

static bool is_to_protect(const struct agent_confinement *c)
{
	return c->masked_paths.n + c->read_only_paths.n > 0;
}

/*
 * What whoever runs the app wants protected, when all else is there; and where the root directory
 * is a volume, what has been mounted beside it goes there.
 */
static int protect(const struct launch *l, const struct way *w, int null, struct fault *f)
{
	const struct agent_process *p = &l->spec->process;
	const struct agent_confinement *c = &l->spec->confinement;
	const struct strv *masked = &c->masked_paths, *read_only = &c->read_only_paths;
	bool is_beside = agent_mounts_root(&l->spec->mounts);
	int r = is_beside ? protect_paths(&w->plan, PROTECT_APPFS, null, read_only, masked, f) : 0;
	if (r == 0 && is_beside)
		r = appfs_settle(f);
	if (r != 0 || !is_to_protect(c))
		return r;
	r = appfs_chdir(cwd_of(p), !p->cwd_is_there, f); /* so that it is made before */
	return r == 0 ? protect_paths(&w->plan, is_beside ? PROTECT_REST : PROTECT_ALL, null,
				      read_only, masked, f)
		      : r;
}

static int become_app(const struct launch *l, struct way *w, int say_fd, struct fault *f)
{
	const struct agent_app_add *spec = l->spec;
	umask(0);
	int r = own_stdio(spec->process.with_tty, &w->ids, f);
	if (r == 0)
		r = appfs_mount(&w->plan, f);
	/* Before a volume can be there; it is closed before there is a filter that forbids that. */
	int null = r == 0 && is_to_protect(&spec->confinement)
			   ? open("/dev/null", O_PATH | O_CLOEXEC)
			   : -EBADF;
	if (r == 0)
		r = volumes_attach(&w->volumes, &spec->mounts, true, "/dev", f);
	volumes_close(&w->volumes);
	if (r == 0)
		r = protect(l, w, null, f);
	fd_close(null);
	if (r == 0)
		r = launch_settle(&spec->process, l->confinement->read_only_root,
				  l->confinement->umask, f);
	if (r == 0)
		r = handle_events(l, say_fd, f);
	return r == 0 ? become(spec->app, &spec->process, l->confinement, &w->ids, f) : r;
}

/*
 * Enters the namespaces that the app's process has made for itself. One that was killed before it
 * had them still has ours for a moment: the root directory tells.
 */
static int join_namespaces(const char *app, int app_fd, bool with_cgroup, struct fault *f)
{
	struct stat before, after;
	int flags = CLONE_NEWNS | (with_cgroup ? CLONE_NEWCGROUP : 0);
	if (stat("/", &before) < 0 || setns(app_fd, flags) < 0 || stat("/", &after) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot join app \"%s\"", app);
	if (before.st_dev == after.st_dev && before.st_ino == after.st_ino)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" has ended", app);
	return 0;
}

/* A further process: the namespace is the app's, and where its root is follows from that. */
static int join_app(const struct launch_exec *l, int app_fd, struct fault *f)
{
	const struct agent_app_exec *spec = l->spec;
	const struct agent_process *p = &spec->process;
	struct ids ids;
	int r = rootfs_resolve_ids(l->rootfs, spec->app, p->user, p->group, &ids, f);
	if (r != 0)
		return r;
	umask(0);
	r = own_stdio(p->with_tty, &ids, f);
	if (r == 0)
		r = confine_badness(l->confinement, f);
	if (r == 0)
		r = join_namespaces(spec->app, app_fd, l->cgroup->fd >= 0, f);
	if (r == 0)
		r = launch_settle(p, false, l->confinement->umask, f);
	return r == 0 ? become(spec->app, p, l->confinement, &ids, f) : r;
}

static int open_shm(const struct launch *l, struct appfs_plan *plan, struct fault *f)
{
	plan->shm_fd = rootfs_open_shm(l->rootfs);
	return plan->shm_fd < 0 ? fault_sys(f, AGENT_E_INTERNAL, plan->shm_fd,
					    "cannot open the pod's shared memory")
				: 0;
}

/*
 * Goes into the app's root, with its volumes mounted but for those in /dev, and keeps what is
 * needed of the agent's root in @w. What make_root() has made is taken back if that fails, in the
 * agent's root, which it is looked up in.
 */
static int enter_root(const struct launch *l, struct way *w, struct fault *f)
{
	const struct agent_app_add *spec = l->spec;
	bool has_volumes = spec->mounts.n > 0;
	int *old_root = l->rootfs->disk_dir ? &w->plan.old_root : NULL;
	char root[ROOTFS_PATH_MAX], empty[ROOTFS_PATH_MAX];
	cleanup_fd int back =
		has_volumes ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -EBADF;
	rootfs_app_path(l->rootfs, spec->app, root);
	int r = volumes_open(l->rootfs, spec->app, &spec->mounts, &w->volumes, f);
	if (r == 0)
		r = open_shm(l, &w->plan, f);
	if (r == 0)
		r = appfs_unshare(l->cgroup->fd >= 0, f);
	if (r == 0)
		r = volumes_attach(&w->volumes, &spec->mounts, false, root, f);
	if (r == 0)
		r = agent_mounts_root(&spec->mounts)
			    ? appfs_enter_beside(root, rootfs_empty_path(l->rootfs, empty),
						 old_root, f)
			    : appfs_enter(root, old_root, f);
	if (r != 0 && has_volumes && !l->mounted && setns(back, CLONE_NEWNS) == 0)
		rootfs_discard_app(l->rootfs, spec->app);
	return r;
}

static _Noreturn void launch_child(const struct launch *l, int go_fd, int say_fd)
{
	const int keep[] = { go_fd, say_fd, l->devpts_fd, log_fd() };
	struct fault f = { 0 };
	struct way w = { .plan = { .devpts_fd = l->devpts_fd,
				   .shm_fd = -EBADF,
				   .old_root = -EBADF,
				   .with_cgroup = l->cgroup->fd >= 0,
				   .open_paths = l->confinement->open_paths },
			 .volumes = VOLUME_FDS_INIT };
	char go;
	int r = cgroup_enter(l->cgroup, &f);
	if (r == 0)
		r = take_stdio(l->stdio, keep, &f);
	if (r == 0)
		r = confine_badness(l->confinement, &f); /* while the agent's /proc is there */
	if (r == 0)
		r = make_root(l, &w.ids, &f);
	if (r == 0)
		r = enter_root(l, &w, &f);
	if (fd_write_all(say_fd, &f, sizeof(f)) < 0 || r != 0 || read(go_fd, &go, 1) != 1)
		_exit(EXECUTE_EXIT_CODE);
	become_app(l, &w, say_fd, &f);
	fd_write_all(say_fd, &f, sizeof(f));
	_exit(EXECUTE_EXIT_CODE);
}

/* The process belongs to the app from its first moment, so it counts there. */
static int fork_failed(const char *app, const struct confinement *c, int err, struct fault *f)
{
	if (err == -EAGAIN)
		return fault_set(f, AGENT_E_LIMIT,
				 "app \"%s\" has as many processes as %s may have", app,
				 c->limits.pids_max > 0 ? "it" : "its pod");
	if (err == -ESRCH)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" has ended", app);
	return fault_sys(f, AGENT_E_INTERNAL, err, "app \"%s\": cannot create a process", app);
}

int launch(const struct launch *l, struct launched *ret, struct fault *f)
{
	int say[2], go[2];
	if (pipe2(say, O_CLOEXEC | O_NONBLOCK) < 0)
		return sys_failed(f, "create a pipe");
	cleanup_fd int say_read = say[0], say_write = say[1];
	if (pipe2(go, O_CLOEXEC) < 0)
		return sys_failed(f, "create a pipe");
	cleanup_fd int go_read = go[0], go_write = go[1];
	pid_t pid = l->init ? pidns_fork(l->init, l->cgroup->fd) : pidns_fork_first(l->cgroup->fd);
	if (pid < 0)
		return fork_failed(l->spec->app, l->confinement, pid, f);
	if (pid == 0)
		launch_child(l, go_read, say_write);
	*ret = (struct launched){ pid, TAKE_FD(say_read), TAKE_FD(go_write) };
	return 0;
}

/*
 * Waits until the app's process, which may have been released a moment ago, executes its program:
 * before that its namespace is not complete. When the program runs, or the process is gone, its end
 * of the pipe is closed; if it could not be executed, the reason is in there.
 */
static int wait_for_app(const struct launch_exec *l, struct fault *f)
{
	struct pollfd p = { .fd = l->app_hear_fd, .events = POLLIN };
	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return sys_failed(f, "wait for the app");
	if (p.revents & POLLIN)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" did not start", l->spec->app);
	return 0;
}

static _Noreturn void exec_child(const struct launch_exec *l, int app_fd, int say_fd)
{
	const int keep[] = { say_fd, app_fd, l->app_hear_fd, log_fd() };
	struct fault f = { 0 };
	int r = cgroup_enter(l->cgroup, &f);
	if (r == 0)
		r = take_stdio(l->stdio, keep, &f);
	if (r == 0)
		r = wait_for_app(l, &f);
	if (r == 0)
		join_app(l, app_fd, &f);
	fd_write_all(say_fd, &f, sizeof(f));
	_exit(EXECUTE_EXIT_CODE);
}

int launch_exec(const struct launch_exec *l, struct launched *ret, struct fault *f)
{
	int say[2];
	cleanup_fd int app_fd = (int)syscall(SYS_pidfd_open, l->app_pid, 0);
	if (app_fd < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "app \"%s\"", l->spec->app);
	if (pipe2(say, O_CLOEXEC | O_NONBLOCK) < 0)
		return sys_failed(f, "create a pipe");
	cleanup_fd int say_read = say[0], say_write = say[1];
	pid_t pid = pidns_fork(l->init, l->cgroup->fd);
	if (pid < 0)
		return fork_failed(l->spec->app, l->confinement, pid, f);
	if (pid == 0)
		exec_child(l, app_fd, say_write);
	*ret = (struct launched){ pid, TAKE_FD(say_read), -EBADF };
	return 0;
}

void launched_deinit(struct launched *p)
{
	fd_close(p->hear_fd);
	fd_close(p->release_fd);
	*p = LAUNCHED_INIT;
}

int launch_hear(const struct launched *p, struct fault *ret)
{
	ssize_t n = read(p->hear_fd, ret, sizeof(*ret));
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	return n == sizeof(*ret) ? 0 : -EPIPE;
}

bool launch_has_executed(const struct launched *p)
{
	struct pollfd fd = { .fd = p->hear_fd, .events = POLLIN };
	return poll(&fd, 1, 0) > 0 && !(fd.revents & POLLIN);
}

int launch_release(const struct launched *p)
{
	return fd_write_all(p->release_fd, "", 1);
}

void launch_abandon(struct launched *p)
{
	fd_replace(&p->release_fd, -EBADF);
}
