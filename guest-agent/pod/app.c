/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/app.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/execute.h"
#include "guest-agent/app/pidns.h"
#include "guest-agent/pod/machine.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

static void app_init(struct app *app)
{
	app->state = APP_WAITING;
	agent_app_add_init(&app->spec);
	app->process = LAUNCHED_INIT;
	app->remove_job = JOB_INIT;
	app->update = UPDATE_INIT;
	app->hear_watch = LOOP_WATCH_INIT;
	app->rest_watch = LOOP_WATCH_INIT;
	app->rest_fd = -EBADF;
	streams_init(&app->io);
}

void app_free(struct app *app)
{
	if (!app)
		return;
	loop_watch_remove(&app->hear_watch);
	loop_watch_remove(&app->rest_watch);
	fd_close(app->rest_fd);
	launched_deinit(&app->process);
	job_deinit(&app->remove_job);
	job_deinit(&app->update.job);
	streams_deinit(&app->io);
	agent_app_add_deinit(&app->spec);
	confinement_deinit(&app->confinement);
	free(app);
}

pid_t app_first_process(const struct app *app)
{
	return app->pod_init != 0 ? app->pod_init : app->init;
}

bool app_is_empty(const struct app *app)
{
	return app->init == 0 && app->rest_fd < 0;
}

static bool ends_by_default(int sig)
{
	static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
					SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (sig == harmless[i])
			return false;
	return true;
}

/*
 * Whether the kernel keeps @sig from the process because it is the first one, which any other would
 * end by. Before the program runs, signals wait, and would then be lost.
 */
static bool is_kept(const struct app *app, int sig)
{
	return app->init == app->process.pid && sig != SIGKILL && ends_by_default(sig) &&
	       (!launch_has_executed(&app->process) || machine_has_default(app->process.pid, sig));
}

static int end_by(struct app *app, int sig)
{
	app->killed_by = sig;
	return machine_signal(app->process.pid, SIGKILL);
}

/* The kernel has sent it to who is in the foreground, and kept it from the first process. */
static void on_key(void *ctx, int sig, pid_t foreground)
{
	struct app *app = ctx;
	if (app->state == APP_RUNNING && app->process.pid == foreground && is_kept(app, sig))
		end_by(app, sig);
}

static int open_streams(struct app *app, struct loop *loop)
{
	int r = streams_open(&app->io, loop, &app->spec.process, -EBADF);
	streams_watch_keys(&app->io, on_key, app);
	if (app->spec.keep_streams)
		streams_keep(&app->io);
	return r;
}

int app_new(struct loop *loop, struct agent_app_add *spec, struct app **ret, struct fault *f)
{
	struct app *app = calloc(1, sizeof(*app));
	if (!app)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	app_init(app);
	int r = confinement_init(&app->confinement, &spec->confinement, f);
	if (r != 0) {
		app_free(app);
		return r;
	}
	app->spec = *spec;
	r = open_streams(app, loop);
	agent_app_add_init(r < 0 ? &app->spec : spec); /* one of the two owns the lists */
	if (r < 0) {
		app_free(app);
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot open the streams of \"%s\"",
				 spec->app);
	}
	*ret = app;
	return 0;
}

int app_reopen(struct app *app, struct loop *loop, struct fault *f)
{
	streams_deinit(&app->io);
	int r = open_streams(app, loop);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot open the streams of \"%s\"",
				 app->spec.app);
	return 0;
}

/*
 * The PID namespace that the process is to be born into, unless it is the first one in a new one.
 * What an app leaves behind in the pod's has to be found: by its control group.
 */
static int find_namespace(struct app *app, const struct pod_config *config,
			  const struct cgroup *cgroup, pid_t *pod_init, struct fault *f)
{
	char empty[ROOTFS_PATH_MAX];
	/* Who runs a handler after the app's end must not be ended by it. */
	bool with_init = app->spec.with_init || app->spec.post_stop.n > 0;
	bool shares = app->spec.shares_processes && cgroup_can_kill(cgroup);
	pid_t *init = shares ? pod_init : &app->init;
	int r = 0;
	if ((shares || with_init) && *init == 0)
		r = pidns_new(rootfs_empty_path(&config->rootfs, empty), init);
	app->pod_init = shares ? *pod_init : 0;
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r,
				 "app \"%s\": cannot create a PID namespace", app->spec.app)
		     : 0;
}

/* The namespaces and the control group that the process is born into, and the process. */
static int make_process(struct app *app, const struct pod_config *config,
			const struct rootfs_names *names, pid_t *pod_init, struct fault *f)
{
	CLEANUP(cgroup_close) struct cgroup cgroup = CGROUP_INIT;
	app->killed_by = 0;
	app->frozen = false;
	int r = cgroup_make(&config->cgroup_dir, app->cgroup, &app->confinement.limits, &cgroup, f);
	if (r == 0)
		r = find_namespace(app, config, &cgroup, pod_init, f);
	if (r != 0)
		return r;
	const struct launch l = {
		.rootfs = &config->rootfs,
		.names = *names,
		.spec = &app->spec,
		.mounted = app->mounted,
		.confinement = &app->confinement,
		.init = app_first_process(app),
		.cgroup = &cgroup,
		.stdio = { app->io.child_fds[0], app->io.child_fds[1], app->io.child_fds[2] },
		.devpts_fd = app->io.devpts_fd,
	};
	r = launch(&l, &app->process, f);
	if (r == 0 && l.init == 0)
		app->init = app->process.pid;
	return r;
}

int app_launch(struct app *app, struct loop *loop, const struct pod_config *config,
	       const struct rootfs_names *names, unsigned cgroup, pid_t *pod_init, loop_watch_fn fn,
	       void *ctx, struct fault *f)
{
	app->cgroup = cgroup;
	app->rootfs = &config->rootfs;
	int r = make_process(app, config, names, pod_init, f);
	if (r != 0)
		return r;
	streams_close_child_side(&app->io);
	r = loop_watch_add(loop, &app->hear_watch, app->process.hear_fd, EPOLLIN, fn, ctx);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\"", app->spec.app);
	app->state = APP_ADDING;
	return 0;
}

int app_hear(struct app *app, struct fault *ret)
{
	int r = launch_hear(&app->process, ret);
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		fault_set(ret, AGENT_E_INTERNAL, "interrupted");
	else if (ret->code == 0) {
		app->state = APP_ADDED;
		app->mounted = true;
	}
	loop_watch_remove(&app->hear_watch);
	return 0;
}

int app_release(struct app *app, struct fault *f)
{
	int r = app->process.pid == 0 ? -ESRCH : launch_release(&app->process);
	if (r == -EPIPE && app->state == APP_ADDING) /* it has ended: why is still to be heard */
		return 0;
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "the process of app \"%s\"",
				 app->spec.app);
	return 0;
}

static void end_namespace(const struct app *app)
{
	if (app->init != 0)
		machine_signal(app->init, SIGKILL);
}

void app_fail_restart(struct app *app)
{
	end_namespace(app);
	loop_watch_remove(&app->hear_watch);
	launched_deinit(&app->process);
	app->state = APP_EXITED;
}

void app_give_up(struct app *app)
{
	end_namespace(app);
	loop_watch_remove(&app->hear_watch);
	launched_deinit(&app->process); /* a process that waits ends with its pipe */
	streams_deinit(&app->io);
	app->spec.app[0] = '\0';
	app->state = APP_GONE;
}

void app_reaped(struct app *app, int status, bool oom)
{
	struct fault why = { 0 };
	app->process.pid = 0;
	end_namespace(app);
	if (app->state != APP_RUNNING)
		return;
	app->state = APP_EXITED;
	app->exit = (struct agent_app_exited){ 0 };
	str_copy(app->exit.app, sizeof(app->exit.app), app->spec.app);
	app->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	app->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	app->exit.oom = oom && !app->killed_by;
	if (app->killed_by && app->exit.signal == SIGKILL)
		app->exit.signal = app->killed_by;
	if (app->exit.code == EXECUTE_EXIT_CODE && launch_hear(&app->process, &why) == 0)
		str_copy(app->exit.message, sizeof(app->exit.message), why.text);
	launched_deinit(&app->process);
}

int app_signal(struct app *app, int sig)
{
	return is_kept(app, sig) ? end_by(app, sig) : machine_signal(app->process.pid, sig);
}

int app_stop_signal(const struct app *app)
{
	return app->spec.stop_signal ? (int)app->spec.stop_signal : SIGTERM;
}
