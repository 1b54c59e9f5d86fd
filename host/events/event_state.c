/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod and each of its apps go through a chain of events. What was told of a chain is kept: for
 * the pod which events, for an app the times of its files. A look yields what is new:
 *
 *   pod   created, prepared, started, ready, exited, marked, removed: each at most once. What a
 *         later one implies and what still shows is told first: a pod that is gone has exited
 *         before, and so have its apps. What no longer shows is left out: where a pod in run was
 *         prepared, for instance.
 *   app   created:  NAME-created is there, or has another time (then "removed" comes before)
 *         started:  NAME-started is there, or has another time
 *         oom:      NAME-oom likewise
 *         exited:   NAME likewise, or has another number. An app that was started and has no such
 *                   file when it is removed or its pod ends has exited, too, but nobody knows how.
 *         removed:  NAME-created was there and is not
 *
 * Before an app is started again NAME and NAME-oom are removed (docs/protocol-stage1.md), so they
 * are about the run that NAME-started tells of. If between two looks an app ended and was started
 * again, how it ended is lost, but not that it did.
 *
 * The events of one look are sorted by time, but none comes before one that it follows from: clocks
 * are set back.
 */
#include "host/events/event_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

#define BIT(n) (1U << (n))
#define LAST   INT64_MAX /* the place of what ends everything */

static const char *const names[POD_EVENT_KIND_COUNT_] = {
	[POD_EVENT_CREATED] = "created",     [POD_EVENT_PREPARED] = "prepared",
	[POD_EVENT_STARTED] = "started",     [POD_EVENT_READY] = "ready",
	[POD_EVENT_DISK_FULL] = "disk-full", [POD_EVENT_DISK_ROOM] = "disk-room",
	[POD_EVENT_SUSPENDED] = "suspended", [POD_EVENT_RESUMED] = "resumed",
	[POD_EVENT_EXITED] = "exited",       [POD_EVENT_MARKED] = "marked",
	[POD_EVENT_REMOVED] = "removed",     [POD_EVENT_APP_CREATED] = "created",
	[POD_EVENT_APP_STARTED] = "started", [POD_EVENT_APP_OOM] = "oom",
	[POD_EVENT_APP_EXITED] = "exited",   [POD_EVENT_APP_REMOVED] = "removed",
};

const char *pod_event_name(enum pod_event_kind kind)
{
	return names[kind];
}

void pod_told_deinit(struct pod_told *t)
{
	if (!t)
		return;
	free(t->apps);
	*t = (struct pod_told){ 0 };
}

/* True if the event @kind of the pod has been told. */
static bool was_told(const struct pod_told *t, enum pod_event_kind kind)
{
	return t->kinds & BIT(kind);
}

struct app_seen *pod_seen_app(struct pod_seen *s, const char *name)
{
	for (size_t i = 0; i < s->n_apps; i++)
		if (strcmp(s->apps[i].name, name) == 0)
			return &s->apps[i];
	if (s->n_apps >= POD_SEEN_APPS_MAX)
		return NULL;
	struct app_seen *app = &s->apps[s->n_apps];
	*app = (struct app_seen){ 0 };
	if (str_copy(app->name, sizeof(app->name), name) < 0)
		return NULL;
	s->n_apps++;
	return app;
}

/* ---- the batch ---- */

/*
 * Adds an event of @app ("": of the pod) that follows from the one with the place @*at, and moves
 * that.
 */
static struct pod_event *event_state_push(struct pod_event_batch *b, enum pod_event_kind kind,
					  const char *app, int64_t time_ns, int64_t *at)
{
	struct pod_event *ev = &b->v[b->n++];
	*at = MAX(*at, time_ns);
	*ev = (struct pod_event){ .kind = kind, .time_ns = time_ns, .order = *at };
	str_copy(ev->app, sizeof(ev->app), app);
	return ev;
}

/* Stable: what has the same place stays in the order in which it was added. */
static void sort_batch(struct pod_event_batch *b)
{
	for (size_t i = 1; i < b->n; i++) {
		struct pod_event ev = b->v[i];
		size_t at = i;
		for (; at > 0 && b->v[at - 1].order > ev.order; at--)
			b->v[at] = b->v[at - 1];
		b->v[at] = ev;
	}
}

/* ---- apps ---- */

/* The changes of one app between two looks. */
struct change {
	struct pod_event_batch *b;
	const struct app_seen *old, *now;
	int64_t now_ns;
	int64_t at; /* place of the last event of its chain */
	bool running;
};

/* A run that nobody saw end has ended at @time_ns at the latest. */
static void push_lost(struct change *c, int64_t time_ns)
{
	if (c->running)
		event_state_push(c->b, POD_EVENT_APP_EXITED, c->now->name, time_ns, &c->at);
	c->running = false;
}

static void push_exited(struct change *c)
{
	struct pod_event *ev = event_state_push(c->b, POD_EVENT_APP_EXITED, c->now->name,
						c->now->exited_ns, &c->at);
	ev->has_exit_code = true;
	ev->exit_code = c->now->exit_code;
	ev->end = c->now->end;
	ev->signal = c->now->signal;
	c->running = false;
}

/* Start and end between the two looks. */
static void push_run(struct change *c)
{
	const struct app_seen *old = c->old, *now = c->now;
	if (now->started_ns > 0 && now->started_ns != old->started_ns) {
		push_lost(c, now->started_ns);
		event_state_push(c->b, POD_EVENT_APP_STARTED, now->name, now->started_ns, &c->at);
		c->running = true;
	}
	if (now->oom_ns > 0 && now->oom_ns != old->oom_ns)
		event_state_push(c->b, POD_EVENT_APP_OOM, now->name, now->oom_ns, &c->at);
	if (now->exited_ns > 0 &&
	    (now->exited_ns != old->exited_ns || now->exit_code != old->exit_code))
		push_exited(c);
}

/* Returns whether the app is running now. */
static bool push_app(struct change *c)
{
	const struct app_seen *old = c->old, *now = c->now;
	bool replaced =
		old->created_ns > 0 && now->created_ns > 0 && old->created_ns != now->created_ns;
	bool removed = old->created_ns > 0 && now->created_ns == 0;
	bool nothing = now->created_ns == 0 && now->started_ns == 0 && now->exited_ns == 0;
	if (replaced) {
		push_lost(c, now->created_ns);
		event_state_push(c->b, POD_EVENT_APP_REMOVED, now->name, now->created_ns, &c->at);
	}
	if (now->created_ns > 0 && now->created_ns != old->created_ns)
		event_state_push(c->b, POD_EVENT_APP_CREATED, now->name, now->created_ns, &c->at);
	push_run(c);
	if (removed || nothing)
		push_lost(c, c->now_ns);
	if (removed)
		event_state_push(c->b, POD_EVENT_APP_REMOVED, now->name, c->now_ns, &c->at);
	return c->running;
}

static const struct app_told *find_told(const struct pod_told *t, const char *name)
{
	for (size_t i = 0; i < t->n_apps; i++)
		if (strcmp(t->apps[i].seen.name, name) == 0)
			return &t->apps[i];
	return NULL;
}

static const struct app_seen *find_seen(const struct pod_seen *s, const char *name)
{
	for (size_t i = 0; i < s->n_apps; i++)
		if (strcmp(s->apps[i].name, name) == 0)
			return &s->apps[i];
	return NULL;
}

/* Tells what is new about the apps; what is seen of them becomes what was told. 0 or -ENOMEM. */
static int push_apps(struct pod_told *t, const struct pod_seen *s, int64_t at,
		     struct pod_event_batch *b)
{
	static const struct app_told none;
	struct app_told *apps = s->n_apps ? calloc(s->n_apps, sizeof(*apps)) : NULL;
	if (s->n_apps && !apps)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_apps; i++) {
		struct app_seen gone = { 0 };
		const struct app_told *told = &t->apps[i];
		if (find_seen(s, told->seen.name))
			continue;
		memcpy(gone.name, told->seen.name, sizeof(gone.name));
		push_app(&(struct change){ b, &told->seen, &gone, s->now_ns, at, told->running });
	}
	for (size_t i = 0; i < s->n_apps; i++) {
		const struct app_told *told = find_told(t, s->apps[i].name);
		told = told ? told : &none;
		struct change c = { b, &told->seen, &s->apps[i], s->now_ns, at, told->running };
		apps[i].running = push_app(&c);
		apps[i].seen = s->apps[i];
	}
	free(t->apps);
	t->apps = apps;
	t->n_apps = s->n_apps;
	return 0;
}

/* ---- the pod ---- */

static bool was_in(const struct pod_seen *s, enum pod_phase phase)
{
	return s->phases & BIT(phase);
}

static void push_once(struct pod_told *t, enum pod_event_kind kind, int64_t time_ns, int64_t *at,
		      struct pod_event_batch *b)
{
	if (t->kinds & BIT(kind))
		return;
	t->kinds |= BIT(kind);
	event_state_push(b, kind, "", time_ns, at);
}

/* When the pod ended: now, or, if that was before the first look, not before its last trace. */
static int64_t ended_ns(const struct pod_told *t, const struct pod_seen *s)
{
	int64_t ns = MAX(s->changed_ns, s->started_ns);
	if (t->looked)
		return s->now_ns;
	for (size_t i = 0; i < s->n_apps; i++)
		ns = MAX(ns, MAX(s->apps[i].exited_ns, s->apps[i].started_ns));
	return ns;
}

/* The end of the pod, and of those of its apps that ended with it. */
static void push_end(struct pod_told *t, const struct pod_seen *s, struct pod_event_batch *b)
{
	int64_t ns = ended_ns(t, s), last = LAST;
	for (size_t i = 0; i < t->n_apps; i++)
		if (t->apps[i].running)
			event_state_push(b, POD_EVENT_APP_EXITED, t->apps[i].seen.name, ns, &last);
	push_once(t, POD_EVENT_EXITED, ns, &last, b);
	free(t->apps);
	t->apps = NULL;
	t->n_apps = 0;
}

/*
 * What begins and ends as often as it happens: it was told to be so since *told, 0 if it is not,
 * and is so since @seen.
 */
static void push_change(enum pod_event_kind begin, enum pod_event_kind end, int64_t *told,
			int64_t seen, int64_t now, int64_t *at, struct pod_event_batch *b)
{
	if (*told > 0 && seen != *told)
		event_state_push(b, end, "", seen > 0 ? seen : now, at);
	if (seen > 0 && seen != *told)
		event_state_push(b, begin, "", seen, at);
	*told = seen;
}

static void push_changes(struct pod_told *t, const struct pod_seen *s, int64_t *at,
			 struct pod_event_batch *b)
{
	push_change(POD_EVENT_DISK_FULL, POD_EVENT_DISK_ROOM, &t->full_ns, s->full_ns, s->now_ns,
		    at, b);
	push_change(POD_EVENT_SUSPENDED, POD_EVENT_RESUMED, &t->suspended_ns, s->suspended_ns,
		    s->now_ns, at, b);
}

/* What a pod that is there shows of its life up to now. 0 or -ENOMEM. */
static int push_life(struct pod_told *t, const struct pod_seen *s, struct pod_event_batch *b)
{
	struct pod_told new =
		*t; /* its apps are replaced at the first success, which is the last step */
	int64_t at = 0;
	push_once(&new, POD_EVENT_CREATED, s->created_ns, &at, b);
	if (was_in(s, POD_PREPARED) && !t->ran) { /* else it is heard of too late */
		bool is = !was_in(s, POD_RUN) && !was_in(s, POD_EXITED_GARBAGE);
		push_once(&new, POD_EVENT_PREPARED, is ? s->moved_ns : s->now_ns, &at, b);
	}
	if (s->started_ns > 0)
		push_once(&new, POD_EVENT_STARTED, s->started_ns, &at, b);
	int r = push_apps(&new, s, at, b);
	if (r < 0)
		return r;
	if (s->ready_ns > 0)
		push_once(&new, POD_EVENT_READY, s->ready_ns, &at, b);
	if (!s->over)
		push_changes(&new, s, &at, b);
	*t = new;
	return 0;
}

int pod_told_update(struct pod_told *t, const struct pod_seen *s, struct pod_event_batch *ret)
{
	int64_t last = LAST;
	ret->n = 0;
	if (s->there && !was_told(t, POD_EVENT_EXITED)) {
		int r = push_life(t, s, ret);
		if (r < 0)
			return r;
	}
	if (!was_told(t, POD_EVENT_CREATED)) /* it came and went unseen */
		return 0;
	t->ran = t->ran || was_in(s, POD_RUN) || was_in(s, POD_EXITED_GARBAGE);
	if (t->ran && !was_told(t, POD_EVENT_EXITED) &&
	    (s->over || was_in(s, POD_EXITED_GARBAGE) || !s->there))
		push_end(t, s, ret);
	if (was_in(s, POD_EXITED_GARBAGE))
		push_once(t, POD_EVENT_MARKED,
			  s->there && s->moved_ns > 0 ? s->moved_ns : s->now_ns, &last, ret);
	if (!s->there)
		push_once(t, POD_EVENT_REMOVED, s->now_ns, &last, ret);
	t->looked = true;
	sort_batch(ret);
	if (s->there && s->name[0])
		memcpy(t->name, s->name, sizeof(t->name));
	for (size_t i = 0; i < ret->n; i++) {
		ret->v[i].pod_name = t->name;
		ret->v[i].ips = ret->v[i].kind == POD_EVENT_READY ? s->ips : NULL;
	}
	return 0;
}
