/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of an app, and what may happen in them:
 *
 *   FREE       the slot has none
 *   AWAITING   for a slot whose last disk is being unplugged, when there is no other; then PLUGGING
 *   PLUGGING   its disk is being plugged; then app.add is sent
 *   ADDING     app.add is sent
 *   ADDED      may be started, removed
 *   STARTING   app.start is sent; EXITED if its program never runs, before the reply
 *   BOOT_ADDING, BOOT_STARTING: the same of a declared app, of which both are sent at once; what
 *              is refused fails the pod
 *   RUNNING    may be stopped; ends with app.exited, as do the next two
 *   STOPPING   on request: SIGTERM is sent, after the grace period SIGKILL; then EXITED
 *   LEAVING    likewise; then REMOVING
 *   EXITED     may be started again, removed
 *   DRAINING   is to be started again as soon as the output of its last run has been read
 *   REMOVING   app.remove is sent; then its disk is unplugged
 *   UNPLUGGING the slot has no app any more, but its disk yet; who asked for the removal has been
 *              told, since a VM takes its time over a disk that nobody has. Then FREE
 *   LOST       the slot has no app, but the backend may still have a part of its disk: not used
 *              again
 *
 * The number of a slot is where the backend has its disk. Each app has one timer, which bounds the
 * state that it is in. An agent that does not answer leaves the app in that state: whoever asked
 * hears of it, a late answer still counts, whoever asks again waits as long again, and the pod can
 * be stopped.
 */
#include "stage1/apps/apps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/app_end.h"
#include "stage1/apps/app_io.h"
#include "stage1/apps/app_spec.h"
#include "stage1/apps/waiters.h"
#include "stage1/pod/podfiles.h"
#include "stage1/streams/tty.h"

enum app_state {
	APP_FREE,
	APP_AWAITING,
	APP_PLUGGING,
	APP_ADDING,
	APP_ADDED,
	APP_STARTING,
	APP_BOOT_ADDING,
	APP_BOOT_STARTING,
	APP_RUNNING,
	APP_STOPPING,
	APP_LEAVING,
	APP_EXITED,
	APP_DRAINING,
	APP_REMOVING,
	APP_UNPLUGGING,
	APP_LOST,
};

struct app {
	struct apps *apps;
	enum app_state state;
	enum app_state before; /* STARTING, REMOVING: the state that a refusal leads back to */
	char name[AGENT_NAME_MAX + 1];
	struct agent_app_add spec; /* of one that is not declared: what app.add is to say */
	int64_t memory_max;        /* bytes; 0: no limit */
	int64_t next_memory_max;   /* the same if the agent takes what it was asked for */
	bool updates_again;        /* the manifest has limits that it was not asked for yet */
	int stop_signal;           /* asks it to end */
	int64_t kill_at_ns;        /* STOPPING, LEAVING: when SIGKILL follows; 0: it was sent */
	/* To be sent when the reply to the last one is there, bit N - 1; [1]: to all processes. */
	uint64_t next_signals[2];
	enum app_verb freezes; /* PAUSE or RESUME, that the agent was asked for */
	struct loop_timer limit;
	struct app_io io;
};

struct apps {
	struct apps_config config;
	const struct apps_ops *ops;
	void *ctx;
	struct app apps[AGENT_APPS_MAX];
	size_t n_declared, n_started; /* of the declared ones */
	bool resized;                 /* the agent has to hear of it */
	bool ends_after_failure;
	struct waiters waiters;
};

static size_t slot_of(const struct app *app)
{
	return (size_t)(app - app->apps->apps);
}

static bool is_app(const struct app *app)
{
	return app->state != APP_FREE && app->state != APP_UNPLUGGING && app->state != APP_LOST;
}

static bool is_booting(const struct app *app)
{
	return app->state == APP_BOOT_ADDING || app->state == APP_BOOT_STARTING;
}

/* It is being added. */
static bool is_coming(const struct app *app)
{
	return app->state == APP_AWAITING || app->state == APP_PLUGGING || app->state == APP_ADDING;
}

/* It was sent a signal on request. */
static bool is_stopping(const struct app *app)
{
	return app->state == APP_STOPPING || app->state == APP_LEAVING;
}

static bool is_up(const struct app *app)
{
	return app->state == APP_RUNNING || is_stopping(app);
}

static struct app *find_app(struct apps *a, const char *name)
{
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		if (is_app(&a->apps[i]) && strcmp(a->apps[i].name, name) == 0)
			return &a->apps[i];
	return NULL;
}

/* ---- who waits ---- */

static int wait_for(struct app *app, enum app_verb verb, uint64_t token, struct err *e)
{
	if (waiters_add(&app->apps->waiters, app, verb, token) == 0)
		return APPS_PENDING;
	return err_set(e, -EAGAIN, "app \"%s\": %d requests wait already (try again)", app->name,
		       WAITERS_MAX);
}

/* Ends all requests that wait for @verb of @app. */
static void apps_tell(struct app *app, enum app_verb verb, const struct err *why)
{
	struct apps *a = app->apps;
	waiters_end(&a->waiters, app, verb, why, a->ops->done, a->ctx);
}

static void tell_all(struct app *app, const struct err *why)
{
	apps_tell(app, APP_VERB_COUNT_, why);
}

void apps_forget(struct apps *a, uint64_t token)
{
	waiters_forget(&a->waiters, token);
}

void apps_abort(struct apps *a, const struct err *why)
{
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		tell_all(&a->apps[i], why);
}

/* ---- streams ---- */

static void on_stream_end(void *ctx, struct stream *st, const struct err *why);

void apps_open_streams(struct apps *a)
{
	for (size_t i = 0; i < a->n_declared; i++)
		app_io_open(&a->apps[i].io, on_stream_end, &a->apps[i]);
}

bool apps_any_stream(const struct apps *a, bool (*is)(const struct stream *st))
{
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		if (app_io_any(&a->apps[i].io, is))
			return true;
	return false;
}

uint64_t apps_output_progress(const struct apps *a)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		sum += app_io_progress(&a->apps[i].io);
	return sum;
}

/* ---- calls to the agent ---- */

static int call(struct app *app, enum apps_call kind, const char *method, int encoded,
		struct json_object *body)
{
	return encoded < 0 ? encoded
			   : control_call(app->apps->config.control,
					  APPS_CALL_ID(kind, slot_of(app)), method, body);
}

static int send_add(struct app *app)
{
	const struct apps *a = app->apps;
	bool declared = app->state == APP_BOOT_ADDING;
	struct agent_app_add m = declared ? a->config.plan->apps[slot_of(app)] : app->spec;
	app->memory_max = m.confinement.memory_max;
	app->stop_signal = m.stop_signal ? (int)m.stop_signal : SIGTERM;
	m.process.with_tty |= a->config.interactive; /* its lists stay where they are */
	m.process.with_stdin |= app_io_wants_stdin(&app->io);
	if (a->config.interactive)
		tty_size(STDIN_FILENO, &m.process.rows, &m.process.cols);
	struct json_object *body = NULL;
	int r = agent_app_add_encode(&m, &body);
	r = call(app, APPS_CALL_ADD, AGENT_APP_ADD, r, body);
	agent_app_add_deinit(&app->spec);
	agent_app_add_init(&app->spec);
	return r;
}

static int send_ref(struct app *app, enum apps_call kind, const char *method)
{
	struct agent_app_ref m;
	memcpy(m.app, app->name, sizeof(m.app));
	struct json_object *body = NULL;
	int r = agent_app_ref_encode(&m, &body);
	return call(app, kind, method, r, body);
}

int apps_boot(struct apps *a)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < a->n_declared; i++) {
		struct app *app = &a->apps[i];
		r = send_add(app);
		if (r == 0)
			r = send_ref(app, APPS_CALL_START, AGENT_APP_START);
	}
	return r;
}

/* One while another is under way waits for its reply: the last size is what counts. */
void apps_resize(struct apps *a)
{
	struct app *app = &a->apps[0];
	if (!a->config.interactive)
		return;
	struct agent_app_resize m = { 0 };
	memcpy(m.app, app->name, sizeof(m.app));
	tty_size(STDIN_FILENO, &m.rows, &m.cols);
	struct json_object *body = NULL;
	int r = agent_app_resize_encode(&m, &body);
	a->resized = call(app, APPS_CALL_RESIZE, AGENT_APP_RESIZE, r, body) == -EBUSY;
}

/* One that comes while another is under way is sent after its reply. 0 or -errno. */
static int send_signal(struct app *app, int number, bool all)
{
	struct agent_app_signal m = { .signal = number, .all = all };
	memcpy(m.app, app->name, sizeof(m.app));
	struct json_object *body = NULL;
	int r = agent_app_signal_encode(&m, &body);
	r = call(app, APPS_CALL_SIGNAL, AGENT_APP_SIGNAL, r, body);
	if (r == -EBUSY)
		app->next_signals[all] |= UINT64_C(1) << (number - 1);
	return r == -EBUSY ? 0 : r;
}

/* Those that came meanwhile, each once, as a process takes them that could not at the time. */
static void send_next_signal(struct app *app)
{
	bool all = app->next_signals[0] == 0;
	int number = ffsll((long long)app->next_signals[all]);
	if (number == 0 || !is_up(app))
		return;
	app->next_signals[all] &= app->next_signals[all] - 1;
	send_signal(app, number, all);
}

/* ---- the timer ---- */

static void on_limit(void *ctx);

static void arm_at(struct app *app, int64_t ns)
{
	loop_timer_arm(app->apps->config.loop, &app->limit, ns, on_limit, app);
}

static void apps_arm(struct app *app, int64_t ms)
{
	arm_at(app, clock_monotonic_ns() + ms * NS_PER_MS);
}

/* For who joins others that have given up: it is not left waiting for ever. */
static void arm_again(struct app *app)
{
	if (!app->limit.loop)
		apps_arm(app, APPS_CALL_LIMIT_MS);
}

/* ---- add ---- */

static void free_slot(struct app *app)
{
	app_io_close(&app->io);
	app_io_end_log(&app->io);
	loop_timer_disarm(&app->limit);
	agent_app_add_deinit(&app->spec);
	agent_app_add_init(&app->spec);
	app->state = APP_FREE;
	app->updates_again = false;
	memset(app->next_signals, 0, sizeof(app->next_signals));
	app->name[0] = '\0';
}

static void leave_slot(struct app *app, bool disk_left)
{
	free_slot(app);
	if (disk_left)
		app->state = APP_LOST;
}

static int begin_add(struct app *app, struct err *e);

/* The next app of the slot, if one has come meanwhile. */
static void end_wait(struct app *app, bool disk_left)
{
	struct err e = ERR_INIT;
	int r = disk_left ? err_set(&e, -EAGAIN,
				    "app \"%s\": its slot has kept the disk of another (try again)",
				    app->name)
			  : begin_add(app, &e);
	if (r == 0)
		return;
	apps_tell(app, APP_VERB_ADD, &e);
	leave_slot(app, disk_left);
}

/* The last disk of the slot is out of the pod, or will never be used. */
static void on_unplugged(void *ctx, const struct err *why, bool left)
{
	struct app *app = ctx;
	if (why)
		dprintf(STDERR_FILENO, "stage1: disk of a removed app: %s\n", why->text);
	if (app->state == APP_AWAITING)
		end_wait(app, left);
	else
		leave_slot(app, left);
}

/* The app is no more. */
static void unplug(struct app *app)
{
	struct err e = ERR_INIT;
	apps_tell(app, APP_VERB_RM, NULL);
	err_set(&e, -ENOENT, "app \"%s\" was removed", app->name);
	tell_all(app, &e); /* what an agent has never answered */
	free_slot(app);
	app->state = APP_UNPLUGGING;
	int r = app->apps->config.backend->unplug(app->apps->config.pod, (int)slot_of(app),
						  on_unplugged, app);
	if (r == 0)
		return;
	err_sys(&e, r, "cannot unplug it");
	on_unplugged(app, &e, true);
}

static void fail_add(struct app *app, const struct err *why)
{
	apps_tell(app, APP_VERB_ADD, why);
	unplug(app);
}

static void on_plugged(void *ctx, const struct err *why, bool left)
{
	struct app *app = ctx;
	struct err e = ERR_INIT;
	if (why) {
		apps_tell(app, APP_VERB_ADD, why);
		leave_slot(app, left);
		return;
	}
	app->state = APP_ADDING;
	apps_arm(app, APPS_CALL_LIMIT_MS);
	int r = send_add(app);
	if (r == 0)
		return;
	err_sys(&e, r, "app \"%s\": cannot ask the agent for it", app->name);
	fail_add(app, &e);
}

/* Of a declared app, whose app.start is on its way. */
static void on_boot_added(struct app *app)
{
	loop_timer_disarm(&app->limit);
	app->state = APP_BOOT_STARTING;
	app_io_may_attach(&app->io);
}

static void on_added(struct app *app)
{
	struct err e = ERR_INIT;
	loop_timer_disarm(&app->limit);
	app->state = APP_ADDED;
	int r = podfiles_note_created(app->apps->config.pod_fd, app->name);
	if (r < 0)
		err_sys(&e, r, "app \"%s\": pod directory", app->name);
	apps_tell(app, APP_VERB_ADD, r < 0 ? &e : NULL);
}

/* One that is free, or else one that will be as soon as its disk is gone; NULL. */
static struct app *find_slot(struct apps *a)
{
	struct app *later = NULL;
	for (size_t i = 0; i < AGENT_APPS_MAX; i++) {
		struct app *app = &a->apps[i];
		if (app->state == APP_FREE)
			return app;
		if (app->state == APP_UNPLUGGING && !later)
			later = app;
	}
	return later;
}

static struct app_spec_pod spec_pod(const struct apps *a)
{
	const struct apps_config *c = &a->config;
	return (struct app_spec_pod){ c->pod_fd, c->backend, c->pod, &c->confine };
}

/* What the pod manifest says of it; opens its log. */
static int read_spec(struct app *app, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	const struct app_spec_pod pod = spec_pod(app->apps);
	const struct pod_app *from;
	pod_manifest_init(&m);
	int r = app_spec_find(&pod, app->name, &m, &from, e);
	if (r < 0)
		return r;
	app->io.modes = from->streams;
	r = app_spec_make(&pod, &m, from, (int)slot_of(app), &app->spec, e);
	const struct pod_log_place place = pod_log_place(&m.tags, &from->tags);
	return r < 0 ? r : app_io_begin_log(&app->io, &place, e);
}

static int begin_add(struct app *app, struct err *e)
{
	struct apps *a = app->apps;
	app->state = APP_PLUGGING;
	int r = read_spec(app, e);
	if (r < 0)
		return r;
	int fd = podfiles_open_rootfs(a->config.pod_fd, app->name, e);
	if (fd < 0)
		return fd;
	r = a->config.backend->plug(a->config.pod, (int)slot_of(app), fd, on_plugged, app);
	return r < 0 ? err_sys(e, r, "app \"%s\": cannot plug its disk", app->name) : 0;
}

static int request_add(struct apps *a, const char *name, uint64_t token, struct err *e)
{
	if (find_app(a, name))
		return err_set(e, -EEXIST, "error: multiple apps with name %s", name);
	struct app *app = find_slot(a);
	if (!app)
		return err_set(e, -E2BIG, "app \"%s\": the pod has room for %d apps (remove one)",
			       name, AGENT_APPS_MAX);
	str_copy(app->name, sizeof(app->name), name);
	int r = wait_for(app, APP_VERB_ADD, token, e);
	if (r < 0)
		return r;
	if (app->state == APP_UNPLUGGING) {
		app->state = APP_AWAITING;
		return APPS_PENDING;
	}
	r = begin_add(app, e);
	if (r == 0)
		return APPS_PENDING;
	apps_forget(a, token);
	free_slot(app);
	return r;
}

/* ---- start ---- */

static void begin_start(struct app *app)
{
	struct err e = ERR_INIT;
	app_io_close(&app->io);
	app->before = app->state == APP_ADDED ? APP_ADDED : APP_EXITED;
	app->state = APP_STARTING;
	apps_arm(app, APPS_CALL_LIMIT_MS);
	int r = send_ref(app, APPS_CALL_START, AGENT_APP_START);
	if (r < 0) {
		app->state = app->before;
		loop_timer_disarm(&app->limit);
		err_sys(&e, r, "app \"%s\": cannot ask the agent for its start", app->name);
		apps_tell(app, APP_VERB_START, &e);
	}
}

/* Of another declared app it is known that its program runs, or never will. */
static void count_started(struct apps *a)
{
	if (++a->n_started == a->n_declared)
		a->ops->started(a->ctx);
}

static void on_started(struct app *app)
{
	struct apps *a = app->apps;
	bool declared = is_booting(app);
	loop_timer_disarm(&app->limit);
	app->state = APP_RUNNING;
	timeline_reach(a->config.timeline, MARK_APP_STARTED);
	podfiles_note_started(a->config.pod_fd, app->name);
	if (declared) {
		count_started(a);
		return;
	}
	app_io_open(&app->io, on_stream_end,
		    app); /* what it writes meanwhile waits with the agent */
	app_io_may_attach(&app->io);
	apps_tell(app, APP_VERB_START, NULL);
}

/* Starting what runs is not a mistake: whoever asks may not know that it was started already. */
static int request_start(struct app *app, uint64_t token, struct err *e)
{
	bool can_start = app->state == APP_ADDED || app->state == APP_EXITED;
	bool starts = app->state == APP_STARTING || app->state == APP_DRAINING;
	if (app->state == APP_RUNNING)
		return 0;
	if (!can_start && !starts)
		return err_set(e, -EBUSY, "app \"%s\" is being added, stopped or removed",
			       app->name);
	int r = wait_for(app, APP_VERB_START, token, e);
	if (r > 0 && starts)
		arm_again(app);
	if (r < 0 || starts)
		return r;
	if (app_io_any(&app->io, stream_is_pending)) {
		app->state = APP_DRAINING;
		apps_arm(app, APPS_DRAIN_LIMIT_MS);
	} else {
		begin_start(app);
	}
	return APPS_PENDING;
}

/* ---- stop ---- */

/* Sends the signal that is due, and sees to the next. */
static void signal_next(struct app *app)
{
	bool due = app->kill_at_ns <= clock_monotonic_ns();
	int r = send_signal(app, due ? SIGKILL : app->stop_signal, false);
	if (due)
		app->kill_at_ns = 0;
	if (due)
		apps_arm(app, APPS_KILL_LIMIT_MS);
	else
		arm_at(app, app->kill_at_ns);
	if (r < 0) {
		struct err e = ERR_INIT;
		err_sys(&e, r, "app \"%s\": cannot ask the agent to stop it", app->name);
		tell_all(app, &e);
	}
}

/* A stop that comes while another is under way can only make it quicker. */
static void begin_stop(struct app *app, int64_t grace_ms)
{
	int64_t kill_at = clock_monotonic_ns() + grace_ms * NS_PER_MS;
	if (is_stopping(app) && app->kill_at_ns == 0 && !app->limit.loop) {
		signal_next(app); /* it did not end, and those who asked have given up */
		return;
	}
	if (is_stopping(app) && (app->kill_at_ns == 0 || app->kill_at_ns <= kill_at))
		return;
	app->kill_at_ns = kill_at;
	if (app->state == APP_RUNNING) {
		app->state = APP_STOPPING;
		podfiles_note_stopping(app->apps->config.pod_fd, app->name);
		signal_next(app);
	} else {
		arm_at(app, kill_at);
	}
}

static int request_stop(struct app *app, int64_t grace_ms, uint64_t token, struct err *e)
{
	if (app->state == APP_STARTING || app->state == APP_DRAINING)
		return err_set(e, -EBUSY, "app \"%s\" is being started", app->name);
	if (!is_up(app))
		return err_set(e, -ESRCH, "app \"%s\" is not running", app->name);
	int r = wait_for(app, APP_VERB_STOP, token, e);
	if (r == APPS_PENDING)
		begin_stop(app, grace_ms);
	return r;
}

/* ---- signal ---- */

/*
 * Whether the app takes it nobody is told of: that the agent was asked is all there is to wait for.
 */
static int request_signal(struct app *app, int number, bool all, struct err *e)
{
	if (!is_up(app))
		return err_set(e, -ESRCH, "app \"%s\" is not running", app->name);
	int r = send_signal(app, number, all);
	return r < 0 ? err_sys(e, r, "app \"%s\": cannot ask the agent to signal it", app->name)
		     : 0;
}

/* ---- pause, resume ---- */

static int request_freeze(struct app *app, enum app_verb verb, uint64_t token, struct err *e)
{
	struct agent_app_freeze m = { .frozen = verb == APP_VERB_PAUSE };
	struct json_object *body = NULL;
	if (!is_up(app))
		return err_set(e, -ESRCH, "app \"%s\" is not running", app->name);
	int r = wait_for(app, verb, token, e);
	if (r < 0)
		return r;
	memcpy(m.app, app->name, sizeof(m.app));
	r = agent_app_freeze_encode(&m, &body);
	r = call(app, APPS_CALL_FREEZE, AGENT_APP_FREEZE, r, body);
	if (r < 0) {
		apps_forget(app->apps, token);
		return err_sys(e, r, "app \"%s\": cannot ask the agent to pause it", app->name);
	}
	app->freezes = verb;
	return APPS_PENDING;
}

/* ---- rm ---- */

static void begin_remove(struct app *app)
{
	struct err e = ERR_INIT;
	app_io_close(&app->io);
	app->before = app->state;
	app->state = APP_REMOVING;
	apps_arm(app, APPS_CALL_LIMIT_MS);
	int r = send_ref(app, APPS_CALL_REMOVE, AGENT_APP_REMOVE);
	if (r == 0)
		return;
	app->state = app->before;
	loop_timer_disarm(&app->limit);
	err_sys(&e, r, "app \"%s\": cannot ask the agent to remove it", app->name);
	apps_tell(app, APP_VERB_RM, &e);
}

static int request_rm(struct app *app, int64_t grace_ms, uint64_t token, struct err *e)
{
	if (is_coming(app) || app->state == APP_STARTING || app->state == APP_DRAINING)
		return err_set(e, -EBUSY, "app \"%s\" is being added or started", app->name);
	int r = wait_for(app, APP_VERB_RM, token, e);
	if (r < 0)
		return r;
	if (is_up(app)) {
		begin_stop(app, grace_ms);
		app->state = APP_LEAVING;
	} else if (app->state == APP_ADDED || app->state == APP_EXITED) {
		begin_remove(app);
	} else if (app->state == APP_REMOVING) {
		arm_again(app);
	}
	return APPS_PENDING;
}

/* ---- update ---- */

/* One that comes while another is under way, whose asker has left, is sent after its reply. */
static int send_update(struct app *app, struct err *e)
{
	const struct app_spec_pod pod = spec_pod(app->apps);
	struct agent_app_update m;
	struct json_object *body = NULL;
	int r = app_spec_limits(&pod, app->name, &m, e);
	if (r < 0)
		return r;
	r = agent_app_update_encode(&m, &body);
	r = call(app, APPS_CALL_UPDATE, AGENT_APP_UPDATE, r, body);
	app->updates_again = r == -EBUSY;
	if (r == 0)
		app->next_memory_max = m.memory_max;
	if (r < 0 && r != -EBUSY)
		return err_sys(e, r, "app \"%s\": cannot ask the agent for other limits",
			       app->name);
	return 0;
}

/* The agent has answered; @why it refuses, or NULL. */
static void on_updated(struct app *app, const struct err *why)
{
	struct err e = ERR_INIT;
	if (!why)
		app->memory_max = app->next_memory_max;
	if (app->updates_again && send_update(app, &e) == 0)
		return;
	apps_tell(app, APP_VERB_UPDATE, e.code < 0 ? &e : why);
}

static int request_update(struct app *app, uint64_t token, struct err *e)
{
	if (is_coming(app) || app->state == APP_REMOVING)
		return err_set(e, -EBUSY, "app \"%s\" is being added or removed", app->name);
	int r = wait_for(app, APP_VERB_UPDATE, token, e);
	if (r < 0)
		return r;
	r = send_update(app, e);
	if (r == 0)
		return APPS_PENDING;
	apps_forget(app->apps, token);
	return r;
}

int apps_request(struct apps *a, const struct app_request *q, uint64_t token, struct err *e)
{
	struct app *app = find_app(a, q->app);
	if (q->verb < APP_VERB_UPDATE && !a->config.plan->is_mutable)
		return err_set(e, -EPERM, "immutable pod");
	if (q->verb == APP_VERB_ADD)
		return request_add(a, q->app, token, e);
	if (!app && q->verb == APP_VERB_RM)
		return 0; /* one that never came so far */
	if (!app)
		return err_set(e, -ENOENT, "error: nonexistent app \"%s\"", q->app);
	switch (q->verb) {
	case APP_VERB_START:
		return request_start(app, token, e);
	case APP_VERB_STOP:
		return request_stop(app, q->grace_ms, token, e);
	case APP_VERB_RM:
		return request_rm(app, q->grace_ms, token, e);
	case APP_VERB_UPDATE:
		return request_update(app, token, e);
	case APP_VERB_SIGNAL:
		return request_signal(app, (int)q->signal, q->all, e);
	case APP_VERB_PAUSE:
	case APP_VERB_RESUME:
		return request_freeze(app, q->verb, token, e);
	case APP_VERB_ADD:
	case APP_VERB_COUNT_:
		break;
	}
	return err_set(e, -EBADMSG, "not understood");
}

/* ---- what happens ---- */

static void on_limit(void *ctx)
{
	struct app *app = ctx;
	struct err e = ERR_INIT;
	if (app->state == APP_DRAINING) {
		begin_start(app);
		return;
	}
	if (is_stopping(app) && app->kill_at_ns > 0) {
		signal_next(app);
		return;
	}
	err_set(&e, -ETIMEDOUT, "app \"%s\": %s", app->name,
		is_up(app) ? "it did not end, although it was killed"
			   : "the agent does not answer");
	tell_all(app, &e);
}

static void on_stream_end(void *ctx, struct stream *st, const struct err *why)
{
	struct app *app = ctx;
	struct apps *a = app->apps;
	(void)st;
	if (app->state == APP_DRAINING && !app_io_any(&app->io, stream_is_pending))
		arm_at(app, clock_monotonic_ns()); /* not from within the stream's own call */
	/* In a mutable pod a stream that breaks is no reason to end the other apps. */
	if (why && a->config.plan->is_mutable) {
		dprintf(STDERR_FILENO, "stage1: %s\n", why->text);
		why = NULL;
	}
	a->ops->stream_ended(a->ctx, why);
}

static void refuse_declared(struct app *app, const char *method, const char *text)
{
	struct err e = ERR_INIT;
	err_set(&e, -EPROTO, "app \"%s\": %s: %s", app->name, method, text);
	app_io_close(&app->io); /* there will be nothing to attach to */
	app->apps->ops->failed(app->apps->ctx, &e);
}

/* The agent refuses a call about @app, and says why. */
static void take_refusal(struct app *app, enum apps_call kind, const char *text)
{
	struct err e = ERR_INIT;
	err_set(&e, -EPROTO, "%s", text);
	if (kind == APPS_CALL_UPDATE) { /* in any state, whose timer is not for it */
		err_context(&e, "app \"%s\"", app->name);
		on_updated(app, &e);
		return;
	}
	if (kind == APPS_CALL_FREEZE) {
		apps_tell(app, app->freezes, &e);
		return;
	}
	loop_timer_disarm(&app->limit);
	if (kind == APPS_CALL_ADD && app->state == APP_ADDING) {
		fail_add(app, &e);
	} else if (kind == APPS_CALL_ADD && app->state == APP_BOOT_ADDING) {
		refuse_declared(app, AGENT_APP_ADD, text);
	} else if (kind == APPS_CALL_START && is_booting(app)) {
		refuse_declared(app, AGENT_APP_START, text);
	} else if (kind == APPS_CALL_START && app->state == APP_STARTING) {
		app->state = app->before;
		apps_tell(app, APP_VERB_START, &e);
	} else if (kind == APPS_CALL_REMOVE && app->state == APP_REMOVING) {
		app->state = app->before;
		apps_tell(app, APP_VERB_RM, &e);
	}
}

static void take_result(struct app *app, enum apps_call kind)
{
	switch (kind) {
	case APPS_CALL_ADD:
		if (app->state == APP_ADDING)
			on_added(app);
		else if (app->state == APP_BOOT_ADDING)
			on_boot_added(app);
		return;
	case APPS_CALL_START:
		if (app->state == APP_STARTING || app->state == APP_BOOT_STARTING)
			on_started(app);
		else if (app->state == APP_BOOT_ADDING)
			refuse_declared(app, AGENT_APP_START,
					"the agent answers it before app.add");
		return;
	case APPS_CALL_REMOVE:
		if (app->state == APP_REMOVING)
			unplug(app);
		return;
	case APPS_CALL_UPDATE:
		on_updated(app, NULL);
		return;
	case APPS_CALL_FREEZE:
		apps_tell(app, app->freezes, NULL);
		return;
	case APPS_CALL_SIGNAL:
	case APPS_CALL_RESIZE:
	case APPS_CALL_COUNT_:
		return;
	}
}

void apps_take_reply(struct apps *a, int id, const struct rpc_msg *msg)
{
	enum apps_call kind = (enum apps_call)(id / AGENT_APPS_MAX);
	struct app *app = &a->apps[id % AGENT_APPS_MAX];
	if (kind == APPS_CALL_RESIZE) {
		if (a->resized)
			apps_resize(a);
	} else if (kind == APPS_CALL_SIGNAL) {
		/* One that is refused was too late: the news of the end is on its way. */
		send_next_signal(app);
	} else if (msg->kind == RPC_ERROR) {
		take_refusal(app, kind, msg->text);
	} else {
		take_result(app, kind);
	}
}

bool apps_all_exited(const struct apps *a)
{
	size_t n = 0;
	for (size_t i = 0; i < AGENT_APPS_MAX; i++) {
		if (!is_app(&a->apps[i]))
			continue;
		if (a->apps[i].state != APP_EXITED)
			return false;
		n++;
	}
	return n > 0;
}

void apps_end_after_failure(struct apps *a)
{
	a->ends_after_failure = true;
}

/* The result of app.start is only behind it: whoever asked for the start reads why it failed. */
static void never_ran(struct app *app, const char *message)
{
	struct err e = ERR_INIT;
	err_set(&e, -ENOEXEC, "app \"%s\": %s", app->name, message);
	apps_tell(app, APP_VERB_START, &e);
}

int apps_take_exited(struct apps *a, const struct agent_app_exited *m)
{
	struct app *app = find_app(a, m->app);
	bool failed = m->code == EXIT_APP_NOT_EXEC && m->message[0];
	enum app_state was = app ? app->state : APP_FREE;
	bool starts = was == APP_STARTING || was == APP_BOOT_STARTING;
	bool unstarted = starts && (failed || m->signal);
	if (!app || !(is_up(app) || unstarted))
		return -EPROTO;
	if (unstarted)
		podfiles_note_started(a->config.pod_fd, app->name);
	int status = app_end_status(m, a->ends_after_failure ? app->stop_signal : 0);
	struct err ended = ERR_INIT;
	bool on_request = is_stopping(app);
	app->state = APP_EXITED;
	memset(app->next_signals, 0, sizeof(app->next_signals));
	loop_timer_disarm(&app->limit);
	/* First of all: syncing takes a while, and the pod may go down meanwhile. */
	a->ops->exited(a->ctx, status, on_request);
	app_end_note(a->config.pod_fd, m, status, app->memory_max);
	if (was == APP_STARTING)
		never_ran(app, failed ? m->message : "it was ended before its program ran");
	else if (was == APP_BOOT_STARTING)
		count_started(a);
	apps_tell(app, APP_VERB_STOP, NULL);
	err_set(&ended, -ESRCH, "app \"%s\" is not running", app->name);
	apps_tell(app, APP_VERB_PAUSE, &ended);
	apps_tell(app, APP_VERB_RESUME, &ended);
	if (was == APP_LEAVING)
		begin_remove(app);
	return 0;
}

/* ---- life ---- */

static int declare(struct app *app, const char *name, struct err *e)
{
	const struct pod_plan *plan = app->apps->config.plan;
	app->io.modes = plan->streams[slot_of(app)];
	str_copy(app->name, sizeof(app->name), name);
	app->state = APP_BOOT_ADDING;
	return app_io_begin_log(&app->io, &plan->logs[slot_of(app)], e);
}

int apps_new(const struct apps_config *config, const struct apps_ops *ops, void *ctx,
	     struct apps **ret, struct err *e)
{
	struct apps *a = calloc(1, sizeof(*a));
	if (!a)
		return err_sys(e, -ENOMEM, "supervisor");
	a->config = *config;
	a->ops = ops;
	a->ctx = ctx;
	for (size_t i = 0; i < AGENT_APPS_MAX; i++) {
		a->apps[i].apps = a;
		agent_app_add_init(&a->apps[i].spec);
		app_io_init(&a->apps[i].io, &a->config, a->apps[i].name);
	}
	a->n_declared = config->plan->n_apps;
	for (size_t i = 0; i < a->n_declared; i++) {
		int r = declare(&a->apps[i], config->plan->apps[i].app, e);
		if (r < 0) {
			apps_free(a);
			return r;
		}
	}
	*ret = a;
	return 0;
}

void apps_free(struct apps *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < AGENT_APPS_MAX; i++)
		free_slot(&a->apps[i]);
	free(a);
}
