/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/pod_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/disk.h"
#include "guest-agent/app/pidns.h"
#include "guest-agent/app/volumes.h"
#include "guest-agent/log.h"
#include "guest-agent/pod/app.h"
#include "guest-agent/pod/check.h"
#include "guest-agent/pod/exec.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/machine.h"
#include "guest-agent/pod/stats.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

static void on_exec_started(void *ctx, uint64_t owner, const struct agent_exec_ref *m)
{
	struct pod *pod = ctx;
	pod->events.exec_started(pod->events.ctx, owner, m);
}

struct pod *pod_new(struct loop *loop, const struct pod_config *config,
		    const struct pod_events *events)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	if (!pod)
		return NULL;
	pod->loop = loop;
	pod->config = *config;
	pod->events = *events;
	pod->job = JOB_INIT;
	pod->execs = exec_table_new(&(struct exec_config){ .loop = loop,
							   .rootfs = &pod->config.rootfs,
							   .cgroup_dir = &pod->config.cgroup_dir,
							   .started = on_exec_started,
							   .ctx = pod });
	pod->stats = stats_table_new(&pod->config.cgroup_dir);
	if (!pod->execs || !pod->stats) {
		pod_free(pod);
		return NULL;
	}
	if (gethostname(pod->hostname, sizeof(pod->hostname)) < 0)
		pod->hostname[0] = '\0';
	pod->hostname[AGENT_HOSTNAME_MAX] = '\0';
	return pod;
}

void pod_free(struct pod *pod)
{
	if (!pod)
		return;
	loop_timer_disarm(&pod->timer);
	job_deinit(&pod->job);
	exec_table_free(pod->execs);
	ports_free(pod->ports);
	stats_table_free(pod->stats);
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		app_free(pod->apps[i]);
	free(pod->resolv_conf);
	free(pod->hosts);
	free(pod);
}

struct app *pod_next_app(const struct pod *pod, size_t *at)
{
	while (*at < AGENT_APPS_MAX) {
		struct app *app = pod->apps[(*at)++];
		if (app)
			return app;
	}
	return NULL;
}

static struct app *find_app(const struct pod *pod, const char *name)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (strcmp(app->spec.app, name) == 0)
			break;
	return app;
}

struct app *pod_need_app(struct pod *pod, const char *name, struct fault *f)
{
	struct app *app = find_app(pod, name);
	if (!app)
		fault_set(f, AGENT_E_NO_APP, "app \"%s\": no such app", name);
	return app;
}

struct app *pod_need_running(struct pod *pod, const char *name, struct fault *f)
{
	struct app *app = pod_need_app(pod, name, f);
	if (app && pod->state > POD_READY)
		fault_set(f, AGENT_E_STATE, "the pod is shutting down");
	else if (app && app->state != APP_RUNNING)
		fault_set(f, AGENT_E_STATE, "app \"%s\" is not running", name);
	else
		return app;
	return NULL;
}

static void answer(struct pod *pod, struct pod_caller to, const struct fault *f)
{
	pod->events.done(pod->events.ctx, to, f && f->code != 0 ? f : NULL);
}

/* --- pod.setup --- */

static void loopback_up(void)
{
	int r = machine_loopback_up();
	if (r < 0)
		log_error("cannot bring the loopback interface up: errno %d", -r);
}

static void prepare_job(const void *arg, struct fault *ret)
{
	const struct pod *pod = arg;
	loopback_up();
	int r = disk_scan(DISK_SCSI_HOSTS, DISK_SCSI_SCAN_TYPE);
	if (r < 0)
		log_error("cannot look for disks: errno %d", -r);
	if (!disk_is_known(DISK_SYSFS, AGENT_SCRATCH_LUN))
		fault_set(ret, AGENT_E_DISK, "no scratch disk");
	else
		rootfs_mount_scratch(&pod->config.rootfs, AGENT_SCRATCH_LUN, ret);
}

/*
 * While the host dials, the machine has nothing else to do. What the first app will need beside its
 * disk is made here rather than in the job, which waits for the disk meanwhile.
 */
void pod_prepare(struct pod *pod)
{
	struct fault f = { 0 };
	machine_open_low_ports(); /* before pod.setup may say otherwise; without a VM others do it */
	pod->preparing = job_start(&pod->job, prepare_job, pod, &f) == 0;
	int r = pod->config.cgroup_dir.path ? cgroup_mount(pod->config.cgroup_dir.path) : 0;
	if (r < 0)
		log_error("no control groups: errno %d", -r);
}

static void setup_job(const void *arg, struct fault *ret)
{
	const struct pod *pod = arg;
	loopback_up();
	if (pod->prepared && rootfs_unmount_scratch(&pod->config.rootfs, ret) != 0)
		return;
	rootfs_mount_scratch(&pod->config.rootfs, pod->scratch_lun, ret);
}

static bool is_prepared(const struct pod *pod)
{
	return pod->prepared && pod->scratch_lun == AGENT_SCRATCH_LUN;
}

/* Of a machine of the pod's own. */
static int set_clock(const struct pod *pod, int64_t ns, struct fault *f)
{
	int r = pod->config.is_init ? machine_set_clock(ns) : 0;
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot set the clock") : 0;
}

int pod_set_clock(struct pod *pod, const struct agent_pod_clock *m, struct fault *f)
{
	return pod->state == POD_NEW ? fault_set(f, AGENT_E_STATE, "the pod is not set up")
				     : set_clock(pod, m->clock_ns, f);
}

static int set_identity(struct pod *pod, const struct agent_pod_setup *m, struct fault *f)
{
	int r = m->hostname[0] ? machine_set_hostname(m->hostname) : 0;
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot set the host name");
	if (m->hostname[0])
		str_copy(pod->hostname, sizeof(pod->hostname), m->hostname);
	return m->clock_ns > 0 ? set_clock(pod, m->clock_ns, f) : 0;
}

/* And what the network has of sysctls, which want its interfaces. */
static int set_network(struct pod *pod, struct agent_pod_setup *m, struct fault *f)
{
	struct err e = ERR_INIT;
	if (m->net && machine_configure_net(m->net, &e) < 0)
		return fault_set(f, AGENT_E_INTERNAL, "%s", e.text);
	if (machine_set_sysctls(&m->sysctls, &e) < 0)
		return fault_set(f, AGENT_E_PARAMS, "%s", e.text);
	free(pod->resolv_conf);
	free(pod->hosts);
	pod->resolv_conf = TAKE_PTR(m->resolv_conf);
	pod->hosts = TAKE_PTR(m->hosts);
	return 0;
}

int pod_setup(struct pod *pod, struct agent_pod_setup *m, struct pod_caller caller, struct fault *f)
{
	if (pod->state != POD_NEW)
		return fault_set(f, AGENT_E_STATE, "the pod is set up already, or shutting down");
	int r = check_hostname(m->hostname, f);
	if (r == 0)
		r = set_identity(pod, m, f);
	if (r == 0)
		r = set_network(pod, m, f);
	if (r != 0)
		return r;
	pod->scratch_lun = m->scratch_lun;
	if (is_prepared(pod)) {
		pod->state = POD_READY;
		return 0;
	}
	r = pod->preparing ? 0 : job_start(&pod->job, setup_job, pod, f);
	if (r != 0)
		return r;
	pod->setup_caller = caller;
	pod->state = POD_SETUP;
	return POD_PENDING;
}

/* --- app.add and app.start --- */

static void remove_cgroup(const struct pod *pod, struct app *app)
{
	if (app->cgroup != 0)
		cgroup_remove(&pod->config.cgroup_dir, app->cgroup);
	app->cgroup = 0;
}

/* Frees an app that could not be added, or was removed. */
static void free_app(struct pod *pod, struct app *app)
{
	if (app->update.job.pid != 0) {
		struct fault f = { 0 };
		fault_set(&f, AGENT_E_STATE, "app \"%s\" was removed", app->spec.app);
		answer(pod, app->update.caller, &f);
	}
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		if (pod->apps[i] == app)
			pod->apps[i] = NULL;
	app_free(app);
}

static void emptied(struct pod *pod, struct app *app);

static void on_rest(void *ctx, uint32_t events)
{
	struct pod *pod = ctx;
	struct app *app;
	(void)events;
	for (size_t i = 0; (app = pod_next_app(pod, &i));) {
		if (app->rest_fd < 0 || cgroup_is_populated(app->rest_fd))
			continue;
		loop_watch_remove(&app->rest_watch);
		app->rest_fd = fd_close(app->rest_fd);
		emptied(pod, app);
	}
}

/*
 * An app has ended in the namespace that it shares: what it has left there ends, too, and until
 * then the app is not empty.
 */
static void await_rest(struct pod *pod, struct app *app)
{
	if (app->pod_init == 0 || app->cgroup == 0 || app->rest_fd >= 0)
		return;
	cgroup_kill(&pod->config.cgroup_dir, app->cgroup);
	int fd = cgroup_open_events(&pod->config.cgroup_dir, app->cgroup);
	if (fd >= 0 && cgroup_is_populated(fd) &&
	    loop_watch_add(pod->loop, &app->rest_watch, fd, EPOLLPRI, on_rest, pod) == 0)
		app->rest_fd = fd;
	else
		fd_close(fd);
}

static void drop_app(struct pod *pod, struct app *app, const struct fault *f)
{
	struct pod_caller adder = app->adder, starter = app->starter;
	bool start_waits = app->start_waits;
	app_give_up(app);
	await_rest(pod, app);
	if (app_is_empty(app)) {
		remove_cgroup(pod, app);
		free_app(pod, app);
	}
	answer(pod, adder, f);
	if (start_waits)
		answer(pod, starter, f);
}

/* An app that could not be started again is as it was. */
static void fail_restart(struct pod *pod, struct app *app, const struct fault *f)
{
	app_fail_restart(app);
	await_rest(pod, app);
	app->start_waits = false;
	answer(pod, app->starter, f);
}

/*
 * Programs that run are seen by the end of the pipe through which their processes would have said
 * why not. One that has said so has its watch until it is reaped, which is a moment.
 */
static void on_program(void *ctx, uint32_t events)
{
	struct pod *pod = ctx;
	struct app *app;
	(void)events;
	for (size_t i = 0; (app = pod_next_app(pod, &i));) {
		if (!app->starting || !launch_has_executed(&app->process))
			continue;
		app->starting = false;
		loop_watch_remove(&app->hear_watch);
		answer(pod, app->starter, NULL);
	}
}

/* The app was released. 0 if its program runs, POD_PENDING if the starter has to wait for that. */
static int await_program(struct pod *pod, struct app *app)
{
	if (launch_has_executed(&app->process) ||
	    loop_watch_add(pod->loop, &app->hear_watch, app->process.hear_fd, EPOLLIN, on_program,
			   pod) < 0)
		return 0;
	app->starting = true;
	return POD_PENDING;
}

static void finish_add(struct pod *pod, struct app *app, bool again, const struct fault *f)
{
	if (f->code != 0) {
		(again ? fail_restart : drop_app)(pod, app, f);
		return;
	}
	if (!again)
		answer(pod, app->adder, NULL);
	if (!app->start_waits)
		return;
	app->state = APP_RUNNING; /* app_release() has been called */
	app->start_waits = false;
	if (await_program(pod, app) == 0)
		answer(pod, app->starter, NULL);
	if (pod->state == POD_TERM)
		app_signal(app, app_stop_signal(app)); /* as the others */
}

/*
 * The process of an app in state ADDING has said something. Apps are told apart by their state
 * only.
 */
static void on_mounted(void *ctx, uint32_t events)
{
	struct pod *pod = ctx;
	struct app *app;
	(void)events;
	for (size_t i = 0; (app = pod_next_app(pod, &i));) {
		struct fault f = { 0 };
		bool again = app->mounted;
		if (app->state == APP_ADDING && app_hear(app, &f) == 0)
			finish_add(pod, app, again, &f);
	}
}

/*
 * Of apps that have ended: not at that moment, when the pod is likely to be in a hurry to end, too.
 */
static void remove_old_cgroups(const struct pod *pod)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (app->state == APP_EXITED && app_is_empty(app))
			remove_cgroup(pod, app);
}

static int launch_app(struct pod *pod, struct app *app, struct fault *f)
{
	const struct rootfs_names names = { .hostname = pod->hostname,
					    .resolv_conf = pod->resolv_conf,
					    .hosts = pod->hosts };
	return app_launch(app, pod->loop, &pod->config, &names, ++pod->last_cgroup, &pod->init,
			  on_mounted, pod, f);
}

/* The scratch file system is there: make the app that was asked for meanwhile. */
static void begin_add(struct pod *pod, struct app *app)
{
	struct fault f = { 0 };
	remove_old_cgroups(pod);
	if (launch_app(pod, app, &f) != 0 || (app->start_waits && app_release(app, &f) != 0))
		drop_app(pod, app, &f);
}

/* The processes of an app that has ended are gone: the same program in the same root. */
static void begin_restart(struct pod *pod, struct app *app)
{
	struct fault f = { 0 };
	remove_cgroup(pod, app);
	int r = pod->state == POD_READY ? app_reopen(app, pod->loop, &f)
					: fault_set(&f, AGENT_E_STATE, "the pod is shutting down");
	if (r == 0)
		r = launch_app(pod, app, &f);
	if (r == 0)
		r = app_release(app, &f);
	if (r != 0)
		fail_restart(pod, app, &f);
}

/* app.start of an app that has ended; its last process may still be ending. */
static int restart_app(struct pod *pod, struct app *app, struct pod_caller caller)
{
	app->start_waits = true;
	app->starter = caller;
	if (app_is_empty(app))
		begin_restart(pod, app);
	return POD_PENDING;
}

static struct app **free_slot(struct pod *pod)
{
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		if (!pod->apps[i])
			return &pod->apps[i];
	return NULL;
}

int pod_app_add(struct pod *pod, struct agent_app_add *m, struct pod_caller caller, struct fault *f)
{
	if (pod->state != POD_SETUP && pod->state != POD_READY)
		return fault_set(f, AGENT_E_STATE, "the pod is not set up, or shutting down");
	if (find_app(pod, m->app))
		return fault_set(f, AGENT_E_STATE, "app \"%s\" exists", m->app);
	int r = check_process(&m->process, f);
	if (r != 0)
		return r;
	struct app **slot = free_slot(pod);
	if (!slot)
		return fault_set(f, AGENT_E_LIMIT, "the pod has %d apps", AGENT_APPS_MAX);
	r = app_new(pod->loop, m, slot, f);
	if (r != 0)
		return r;
	(*slot)->adder = caller;
	if (pod->state == POD_READY)
		begin_add(pod, *slot);
	return POD_PENDING;
}

int pod_app_start(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		  struct fault *f)
{
	struct app *app = pod_need_app(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	if (pod->state != POD_SETUP && pod->state != POD_READY)
		return fault_set(f, AGENT_E_STATE, "the pod is shutting down");
	if (app->state == APP_REMOVING)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" is being removed", m->app);
	if (app->state == APP_RUNNING || app->start_waits)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" was started before", m->app);
	if (app->state == APP_EXITED)
		return restart_app(pod, app, caller);
	int r = app->state == APP_WAITING ? 0 : app_release(app, f);
	if (r != 0)
		return r;
	if (app->state == APP_ADDED) {
		app->state = APP_RUNNING;
		app->starter = caller;
		return await_program(pod, app);
	}
	app->start_waits = true;
	app->starter = caller;
	return POD_PENDING;
}

/* --- app.remove --- */

static void remove_job(const void *arg, struct fault *ret)
{
	const struct app *app = arg;
	volumes_look_anew(app->rootfs, app->spec.app);
	rootfs_remove_app(app->rootfs, app->spec.app, app->spec.lun, ret);
}

/* As soon as no process is left in it. */
static void remove_if_empty(struct pod *pod, struct app *app)
{
	struct fault f = { 0 };
	if (app->process.pid != 0 || !app_is_empty(app))
		return;
	remove_cgroup(pod, app);
	if (pod->state != POD_READY)
		fault_set(&f, AGENT_E_STATE, "the pod is shutting down");
	else if (job_start(&app->remove_job, remove_job, app, &f) == 0)
		return;
	app->state = APP_EXITED;
	answer(pod, app->adder, &f);
}

/* What could not be removed may be tried again. */
static void finish_remove(struct pod *pod, struct app *app)
{
	struct fault f;
	job_finish(&app->remove_job, &f);
	if (f.code == 0) {
		drop_app(pod, app, NULL);
		return;
	}
	app->state = APP_EXITED;
	answer(pod, app->adder, &f);
}

int pod_app_remove(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		   struct fault *f)
{
	struct app *app = pod_need_app(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	if (pod->state != POD_READY)
		return fault_set(f, AGENT_E_STATE, "the pod is not set up, or shutting down");
	if ((app->state != APP_ADDED && app->state != APP_EXITED) || app->start_waits)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" runs, or is being added or removed",
				 m->app);
	app->state = APP_REMOVING;
	app->adder = caller;
	launch_abandon(&app->process);
	remove_if_empty(pod, app);
	return POD_PENDING;
}

/* --- the end of pod.setup --- */

/* Answers pod.setup and goes on with the apps that waited for it. */
static void end_setup(struct pod *pod, struct fault *f)
{
	bool ok = f->code == 0;
	if (pod->state == POD_SETUP)
		pod->state = ok ? POD_READY : POD_NEW;
	answer(pod, pod->setup_caller, f);
	if (ok && pod->state != POD_READY)
		fault_set(f, AGENT_E_STATE, "the pod is shutting down");
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));) {
		if (app->state == APP_WAITING && f->code == 0)
			begin_add(pod, app);
		else if (app->state == APP_WAITING)
			drop_app(pod, app, f);
	}
}

static void finish_setup(struct pod *pod)
{
	struct fault f;
	job_finish(&pod->job, &f);
	end_setup(pod, &f);
}

/* What could not be prepared is not a failure: pod.setup will wait for the disk and say why. */
static void finish_prepare(struct pod *pod)
{
	struct fault f;
	job_finish(&pod->job, &f);
	pod->preparing = false;
	pod->prepared = f.code == 0;
	f.code = 0;
	if (pod->setup_caller.conn == 0)
		return;
	if (pod->state != POD_SETUP)
		fault_set(&f, AGENT_E_STATE, "the pod is shutting down");
	else if (!is_prepared(pod) && job_start(&pod->job, setup_job, pod, &f) == 0)
		return;
	end_setup(pod, &f);
}

/* --- limits --- */

static struct updated updated_app(const struct pod *pod, struct app *app)
{
	return (struct updated){ &pod->config.cgroup_dir, app->cgroup, &app->confinement.limits };
}

int pod_app_update(struct pod *pod, const struct agent_app_update *m, struct pod_caller caller,
		   struct fault *f)
{
	struct app *app = pod_need_app(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	if (pod->state > POD_READY || app->state < APP_ADDED || app->state > APP_EXITED ||
	    app->update.job.pid != 0)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" is being added, removed or updated",
				 m->app);
	const struct updated what = updated_app(pod, app);
	int r = update_start(&app->update, &what, m, caller, f);
	return r == UPDATE_PENDING ? POD_PENDING : r;
}

static void finish_update(struct pod *pod, struct app *app)
{
	struct fault f = { 0 };
	const struct updated what = updated_app(pod, app);
	if (update_finish(&app->update, &what, &f))
		answer(pod, app->update.caller, &f);
}

/* --- connections --- */

void pod_conn_closed(struct pod *pod, uint64_t conn)
{
	exec_drop_owner(pod->execs, conn);
	stats_drop_owner(pod->stats, conn);
}

void pod_each_exited(struct pod *pod, void (*fn)(void *ctx, const struct agent_app_exited *m),
		     void *ctx)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (app->state == APP_EXITED && app->exit.app[0])
			fn(ctx, &app->exit);
}

/* --- pod.shutdown --- */

static void pod_arm(struct pod *pod, int64_t ms, loop_timer_fn fn)
{
	loop_timer_arm(pod->loop, &pod->timer, clock_monotonic_ns() + ms * NS_PER_MS, fn, pod);
}

static void ask_apps_to_end(struct pod *pod)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (app->state == APP_RUNNING)
			app_signal(app, app_stop_signal(app));
}

static void go_off(struct pod *pod)
{
	loop_timer_disarm(&pod->timer);
	pod->state = POD_OFF;
	for (size_t i = 0; i < pod->n_waiters; i++)
		answer(pod, pod->waiters[i], NULL);
	pod->n_waiters = 0;
	pod->events.off(pod->events.ctx);
}

static bool any_sending(const struct pod *pod)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (streams_any_sending(&app->io))
			return true;
	return exec_any_sending(pod->execs);
}

/* No process is left that writes, so this comes to an end, unless a reader does not read. */
static void on_drain_step(void *ctx)
{
	struct pod *pod = ctx;
	int64_t end_ns = pod->drain_from_ns + pod->drain_ms * NS_PER_MS;
	if (any_sending(pod) && clock_monotonic_ns() < end_ns)
		pod_arm(pod, POD_DRAIN_STEP_MS, on_drain_step);
	else
		go_off(pod);
}

static void begin_drain(void *ctx)
{
	struct pod *pod = ctx;
	pod->state = POD_DRAIN;
	pod->drain_from_ns = clock_monotonic_ns();
	on_drain_step(pod);
}

static void unmount_job(const void *arg, struct fault *ret)
{
	const struct pod *pod = arg;
	struct app *app;
	volumes_seal(&pod->config.rootfs);
	if (rootfs_seal_scratch(&pod->config.rootfs) == 0)
		return;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (app->state != APP_GONE)
			rootfs_unmount_root(&pod->config.rootfs, app->spec.app);
	rootfs_unmount_scratch(&pod->config.rootfs, ret);
}

static void begin_unmount(void *ctx)
{
	struct pod *pod = ctx;
	struct fault f = { 0 };
	job_deinit(&pod->job); /* a setup that survived SIGKILL is stuck for good */
	pod->state = POD_UNMOUNT;
	if (job_start(&pod->job, unmount_job, pod, &f) == 0) {
		pod_arm(pod, POD_UNMOUNT_WAIT_MS, begin_drain);
		return;
	}
	log_error("%s", f.text);
	begin_drain(pod);
}

static void finish_unmount(struct pod *pod)
{
	struct fault f;
	job_finish(&pod->job, &f);
	if (f.code != 0)
		log_error("%s", f.text);
	begin_drain(pod);
}

static void begin_kill(void *ctx)
{
	struct pod *pod = ctx;
	pod->state = POD_KILL;
	pod_arm(pod, POD_KILL_WAIT_MS, begin_unmount);
	machine_kill_all(); /* jobs included */
	pod_reap(pod);
}

static bool any_running(const struct pod *pod)
{
	struct app *app;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (app->state == APP_RUNNING)
			return true;
	return false;
}

/* Takes the earlier of two grace periods, so that a second call can force what the first asked. */
static void begin_term(struct pod *pod, int64_t grace_ms)
{
	int64_t deadline = clock_monotonic_ns() + grace_ms * NS_PER_MS;
	bool first = pod->state != POD_TERM;
	if (first && grace_ms > 0)
		ask_apps_to_end(pod);
	pod->state = POD_TERM;
	if (!any_running(pod) || grace_ms == 0) {
		begin_kill(pod);
		return;
	}
	if (!first && deadline >= pod->deadline_ns)
		return;
	pod->deadline_ns = deadline;
	loop_timer_arm(pod->loop, &pod->timer, deadline, begin_kill, pod);
}

int pod_shutdown(struct pod *pod, const struct agent_pod_shutdown *m, struct pod_caller caller,
		 struct fault *f)
{
	if (pod->state == POD_OFF)
		return 0;
	if (pod->n_waiters == POD_SHUTDOWN_WAITERS_MAX)
		return fault_set(f, AGENT_E_LIMIT, "%d calls wait for the shutdown",
				 POD_SHUTDOWN_WAITERS_MAX);
	if (pod->n_waiters == 0 || m->drain_ms < pod->drain_ms)
		pod->drain_ms = m->drain_ms;
	pod->waiters[pod->n_waiters++] = caller;
	if (pod->state <= POD_TERM)
		begin_term(pod, m->grace_ms);
	return POD_PENDING;
}

/* --- reaping --- */

static void job_reaped(struct pod *pod)
{
	if (pod->state > POD_UNMOUNT)
		return; /* it took too long, and was given up */
	if (pod->state == POD_UNMOUNT)
		finish_unmount(pod);
	else if (pod->preparing)
		finish_prepare(pod);
	else
		finish_setup(pod);
}

/*
 * Groups are killed as a whole, so an app that ended otherwise has not ended by it: the main
 * process may be exempt by its oom_score_adj. Of version 1 they are not: there an app that has lost
 * another process before, and is killed now, seems to have ended by it, too.
 */
static bool is_oom_kill(const struct pod *pod, const struct app *app, int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
	       cgroup_had_oom_kill(&pod->config.cgroup_dir, app->cgroup);
}

/*
 * What the process has said before its end comes first; without a word, the adding has failed:
 * false, and the app may be gone.
 */
static bool process_reaped(struct pod *pod, struct app *app, int status)
{
	struct fault f = { 0 };
	bool again = app->mounted;
	if (app->state == APP_ADDING && app_hear(app, &f) == 0) {
		bool over = f.code != 0;
		finish_add(pod, app, again, &f);
		if (over)
			return false;
	}
	/* A program that has run already can end before the loop tells that it began. */
	if (WIFEXITED(status))
		on_program(pod, 0);
	bool ran = app->state == APP_RUNNING, starting = app->starting;
	if (starting)
		loop_watch_remove(&app->hear_watch);
	app->starting = false;
	app_reaped(app, status, is_oom_kill(pod, app, status));
	if (ran)
		pod->events.exited(pod->events.ctx, &app->exit);
	if (starting) /* who waits for the result knows by then that the program never ran */
		answer(pod, app->starter, NULL);
	return true;
}

/* No process of it is left. */
static void emptied(struct pod *pod, struct app *app)
{
	if (app->state == APP_GONE) {
		remove_cgroup(pod, app);
		free_app(pod, app);
	} else if (app->state == APP_REMOVING) {
		remove_if_empty(pod, app);
	} else if (app->state == APP_EXITED && app->start_waits) {
		begin_restart(pod, app);
	}
}

static bool stats_read(struct pod *pod, pid_t pid)
{
	struct agent_app_stats m;
	struct pod_caller to;
	struct fault f = { 0 };
	if (!stats_reaped(pod->stats, pid, &to, &m, &f))
		return false;
	if (f.code == 0)
		pod->events.stats(pod->events.ctx, to, &m);
	else
		answer(pod, to, &f);
	return true;
}

/* Whether it was one of @app. */
static bool child_reaped(struct pod *pod, struct app *app, pid_t pid, int status)
{
	if (app->process.pid == pid) {
		if (app->init == pid)
			app->init = 0;
		if (process_reaped(pod, app, status)) {
			await_rest(pod, app);
			if (app_is_empty(app))
				emptied(pod, app);
		}
	} else if (app->remove_job.pid == pid) {
		finish_remove(pod, app);
	} else if (app->update.job.pid == pid) {
		finish_update(pod, app);
	} else if (app->init == pid) {
		app->init = 0;
		emptied(pod, app);
	} else {
		return false;
	}
	return true;
}

static void reaped(struct pod *pod, pid_t pid, int status)
{
	struct app *app;
	struct agent_exec_exited exited;
	uint64_t owner;
	if (pid == pod->job.pid) {
		job_reaped(pod);
		return;
	}
	if (pid == pod->init)
		pod->init = 0;
	for (size_t i = 0; (app = pod_next_app(pod, &i));)
		if (child_reaped(pod, app, pid, status))
			return;
	if (!stats_read(pod, pid) && exec_reaped(pod->execs, pid, status, &exited, &owner))
		pod->events.exec_exited(pod->events.ctx, owner, &exited);
}

void pod_reap(struct pod *pod)
{
	int status;
	pid_t pid;
	int r;
	while ((r = machine_reap(&pid, &status)) == 0)
		reaped(pod, pid, status);
	bool empty = r == -ECHILD;
	if (pod->state == POD_TERM && !any_running(pod))
		begin_kill(pod);
	else if (pod->state == POD_KILL && empty)
		begin_unmount(pod);
}
