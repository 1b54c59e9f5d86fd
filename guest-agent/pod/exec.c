/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/execute.h"
#include "guest-agent/pod/machine.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

struct exec {
	const struct exec_config *config; /* borrowed */
	int64_t number;
	uint64_t owner;
	char app[AGENT_NAME_MAX + 1];
	char whom[AGENT_NAME_MAX + 40]; /* for messages */
	struct launched process;        /* pid 0 once it was reaped */
	struct loop_watch hear_watch;   /* until its program is executed */
	struct streams io;
};

struct exec_table {
	struct exec_config config;
	int64_t last_number;
	struct exec *execs[AGENT_EXECS_MAX]; /* owned; NULL: free */
};

static void exec_free(struct exec *x)
{
	if (!x)
		return;
	loop_watch_remove(&x->hear_watch);
	launched_deinit(&x->process);
	streams_deinit(&x->io);
	free(x);
}

struct exec_table *exec_table_new(const struct exec_config *config)
{
	struct exec_table *t = calloc(1, sizeof(*t));
	if (t)
		t->config = *config;
	return t;
}

void exec_table_free(struct exec_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < AGENT_EXECS_MAX; i++)
		exec_free(t->execs[i]);
	free(t);
}

/* --- starting --- */

/*
 * True if /proc is that of our own PID namespace, in which numbers of processes mean what we mean.
 */
static bool proc_is_ours(void)
{
	char self[16] = "", pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && strcmp(self, pid) == 0;
}

/*
 * The devpts instance that the app has mounted, so that its programs find their terminal by name.
 * The way there is the app's to change, the kind of file system is not. The descriptor, or -errno
 * if it has none (there, or yet); the process then gets an instance that has no name for it.
 */
static int open_app_pts(const struct launched *app)
{
	char path[64];
	struct statfs st;
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	if (!proc_is_ours() || !launch_has_executed(app))
		return -ENODEV;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)app->pid);
	cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	cleanup_fd int fd = (int)syscall(SYS_openat2, root, "dev/pts", &how, sizeof(how));
	if (fd < 0 || fstatfs(fd, &st) < 0)
		return -errno;
	return st.f_type == DEVPTS_SUPER_MAGIC ? TAKE_FD(fd) : -ENODEV;
}

/* The group, too: it may be a shell that waits for others. A new process may not have one yet. */
static void kill_exec(const struct exec *x)
{
	if (x->process.pid == 0)
		return;
	machine_signal(x->process.pid, SIGKILL);
	machine_signal(-x->process.pid, SIGKILL);
}

/*
 * A program that runs is seen by the end of the pipe through which its process would have said why
 * not. What one has said is read when it is reaped, which is a moment later.
 */
static void on_program(void *ctx, uint32_t events)
{
	struct exec *x = ctx;
	const struct exec_config *config = x->config;
	(void)events;
	loop_watch_remove(&x->hear_watch);
	if (launch_has_executed(&x->process))
		config->started(config->ctx, x->owner, &(struct agent_exec_ref){ x->number });
}

static int launch_in(struct exec_table *t, struct exec *x, const struct app *app,
		     const struct agent_app_exec *m, struct fault *f)
{
	cleanup_fd int pts_fd = m->process.with_tty ? open_app_pts(&app->process) : -EBADF;
	int r = streams_open(&x->io, t->config.loop, &m->process, pts_fd);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\": cannot open the streams",
				 m->app);
	struct confinement confinement = app->confinement; /* what it owns stays the app's */
	if (m->groups.n > 0) {
		r = confinement_set_groups(&confinement, &m->groups, f);
		if (r != 0)
			return r;
	}
	CLEANUP(cgroup_close) struct cgroup cgroup = CGROUP_INIT;
	r = cgroup_open(t->config.cgroup_dir, app->cgroup, &cgroup);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r,
				 "app \"%s\": cannot open its control group", m->app);
	const struct launch_exec l = {
		.rootfs = t->config.rootfs,
		.spec = m,
		.confinement = &confinement,
		.init = app_first_process(app),
		.cgroup = &cgroup,
		.app_pid = app->process.pid,
		.app_hear_fd = app->process.hear_fd,
		.stdio = { x->io.child_fds[0], x->io.child_fds[1], x->io.child_fds[2] },
	};
	r = launch_exec(&l, &x->process, f);
	streams_close_child_side(&x->io);
	return r;
}

static struct exec **free_slot(struct exec_table *t)
{
	for (size_t i = 0; i < AGENT_EXECS_MAX; i++)
		if (!t->execs[i])
			return &t->execs[i];
	return NULL;
}

int exec_start(struct exec_table *t, const struct app *app, const struct agent_app_exec *m,
	       uint64_t owner, int64_t *ret, struct fault *f)
{
	struct exec **slot = free_slot(t);
	if (!slot || t->last_number == INT32_MAX)
		return fault_set(f, AGENT_E_LIMIT, "%d processes were started in the pod",
				 AGENT_EXECS_MAX);
	struct exec *x = calloc(1, sizeof(*x));
	if (!x)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	x->config = &t->config;
	x->process = LAUNCHED_INIT;
	x->hear_watch = LOOP_WATCH_INIT;
	x->owner = owner;
	streams_init(&x->io);
	memcpy(x->app, m->app, sizeof(x->app));
	int r = launch_in(t, x, app, m, f);
	if (r == 0 && loop_watch_add(t->config.loop, &x->hear_watch, x->process.hear_fd, EPOLLIN,
				     on_program, x) < 0)
		r = fault_set(f, AGENT_E_INTERNAL, "out of memory");
	if (r != 0) {
		kill_exec(x);
		exec_free(x);
		return r;
	}
	x->number = ++t->last_number;
	snprintf(x->whom, sizeof(x->whom), "process %lld of app \"%s\"", (long long)x->number,
		 x->app);
	*slot = x;
	*ret = x->number;
	return 0;
}

/* --- requests about one --- */

static struct exec *exec_find(struct exec_table *t, int64_t number)
{
	for (size_t i = 0; i < AGENT_EXECS_MAX; i++)
		if (t->execs[i] && t->execs[i]->number == number)
			return t->execs[i];
	return NULL;
}

static struct exec *need(struct exec_table *t, int64_t number, uint64_t owner, struct fault *f)
{
	struct exec *x = exec_find(t, number);
	if (x && x->owner == owner)
		return x;
	fault_set(f, AGENT_E_NO_APP, "process %lld: not of this connection", (long long)number);
	return NULL;
}

int exec_signal(struct exec_table *t, const struct agent_exec_signal *m, uint64_t owner,
		struct fault *f)
{
	const struct exec *x = need(t, m->exec, owner, f);
	if (!x)
		return FAULT_SET;
	if (x->process.pid == 0)
		return fault_set(f, AGENT_E_STATE, "%s has ended", x->whom);
	int r = machine_signal(x->process.pid, (int)m->signal);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "%s: signal", x->whom) : 0;
}

int exec_resize(struct exec_table *t, const struct agent_exec_resize *m, uint64_t owner,
		struct fault *f)
{
	const struct exec *x = need(t, m->exec, owner, f);
	return x ? streams_resize(&x->io, m->rows, m->cols, x->whom, f) : FAULT_SET;
}

bool exec_any_sending(const struct exec_table *t)
{
	for (size_t i = 0; i < AGENT_EXECS_MAX; i++)
		if (t->execs[i] && streams_any_sending(&t->execs[i]->io))
			return true;
	return false;
}

struct streams *exec_streams(struct exec_table *t, const char *app, int64_t number,
			     const char **ret_whom, struct fault *f)
{
	struct exec *x = exec_find(t, number);
	if (!x || strcmp(x->app, app) != 0) {
		fault_set(f, AGENT_E_NO_APP, "app \"%s\" has no process %lld", app,
			  (long long)number);
		return NULL;
	}
	*ret_whom = x->whom;
	return &x->io;
}

/* --- the end --- */

bool exec_reaped(struct exec_table *t, pid_t pid, int status, struct agent_exec_exited *ret,
		 uint64_t *ret_owner)
{
	struct exec *x = NULL;
	for (size_t i = 0; i < AGENT_EXECS_MAX && !x; i++)
		if (t->execs[i] && t->execs[i]->process.pid == pid)
			x = t->execs[i];
	if (!x)
		return false;
	struct fault why = { 0 };
	*ret = (struct agent_exec_exited){ .exec = x->number };
	ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	if (ret->code == EXECUTE_EXIT_CODE && launch_hear(&x->process, &why) == 0)
		str_copy(ret->message, sizeof(ret->message), why.text);
	else if (x->hear_watch.loop)
		on_program(x, 0); /* it was short */
	loop_watch_remove(&x->hear_watch);
	launched_deinit(&x->process); /* and no pid any more */
	*ret_owner = x->owner;
	return true;
}

void exec_drop_owner(struct exec_table *t, uint64_t owner)
{
	for (size_t i = 0; i < AGENT_EXECS_MAX; i++) {
		if (!t->execs[i] || t->execs[i]->owner != owner)
			continue;
		kill_exec(t->execs[i]);
		exec_free(t->execs[i]);
		t->execs[i] = NULL;
	}
}
