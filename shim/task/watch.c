/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the pod and its apps, from the files that they are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/pod/detach.h"
#include "host/pod/info.h"
#include "lib/os/clock.h"
#include "shim/task/task_int.h"

struct container *shim_find_app(struct shim *s, const char *app)
{
	struct container *c = s->containers;
	while (c && strcmp(c->app, app) != 0)
		c = c->next;
	return c;
}

/* Why a pod ended by itself is what its supervisor has said last, while it is there. */
static void tell_why(const struct shim *s)
{
	cleanup_pod struct pod p = POD_INIT;
	struct err ignored = ERR_INIT;
	char line[DETACH_LOG_MAX] = "";
	if (pod_open(s->pods, s->uuid, &p, &ignored) == 0)
		detach_last_line(&p, line);
	str_make_printable(line); /* a guest may have said it */
	if (line[0])
		fprintf(stderr, "husk: pod %s: %s\n", s->uuid, line);
}

/* The end of one of which nobody has said how it ended. */
static uint32_t lost_status(const struct container *c)
{
	return c->spec.is_sandbox || c->init.was_killed ? PROCESS_KILLED : PROCESS_LOST;
}

/* The pod has ended, and with it all that was in it. */
static void end_all(struct shim *s, int64_t time_ns)
{
	if (!s->pod_is_over)
		tell_why(s);
	s->pod_is_over = true;
	for (struct container *c = s->containers; c; c = c->next)
		if (c->was_added)
			process_ended(&c->init, lost_status(c), time_ns);
}

static void publish_oom(const struct container *c)
{
	Task__TaskOOM m;
	task__task_oom__init(&m);
	m.container_id = c->id;
	publisher_publish(c->shim->publisher, "/tasks/oom", "containerd.events.TaskOOM", &m.base);
}

static int on_event(void *ctx, const struct uuid *pod, const struct pod_event *ev)
{
	struct shim *s = ctx;
	struct container *c = shim_find_app(s, ev->app);
	(void)pod;
	if (ev->kind == POD_EVENT_EXITED)
		end_all(s, ev->time_ns);
	else if (ev->kind == POD_EVENT_APP_OOM && c)
		publish_oom(c);
	else if (ev->kind == POD_EVENT_APP_EXITED && c)
		process_ended(&c->init,
			      ev->signal          ? 128 + (uint32_t)ev->signal
			      : ev->has_exit_code ? (uint32_t)ev->exit_code
						  : lost_status(c),
			      ev->time_ns);
	return 0;
}

static int on_live(void *ctx)
{
	(void)ctx;
	return 0;
}

static void on_problem(void *ctx, const struct err *e)
{
	struct shim *s = ctx;
	fprintf(stderr, "husk: %s\n", e->text);
	end_all(s, clock_realtime_ns());
}

/* The pod's supervisor stands for all of its processes. */
static int find_supervisor(struct shim *s, struct err *e)
{
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	int r = pod_open(s->pods, s->uuid, &p, e);
	if (r == 0)
		r = pod_info_read(s->pods, &p, &info);
	if (r != 0 || info.pid == 0)
		return err_set(e, -ESRCH, "the pod has ended");
	s->pod_pid = info.pid;
	return 0;
}

int shim_watch(struct shim *s, struct err *e)
{
	struct uuid uuid;
	const struct pod_events_request q = {
		.only = &uuid,
		.max = 1,
		.replay = true,
		.event = on_event,
		.live = on_live,
		.problem = on_problem,
		.ctx = s,
	};
	str_copy(uuid.text, sizeof(uuid.text), s->uuid);
	int r = husk_open_pods(&s->place, &s->pods, e);
	if (r == 0)
		r = find_supervisor(s, e);
	if (r == 0)
		r = pod_events_new(s->loop, s->pods, &q, &s->events, e);
	if (r < 0)
		return r;
	shim_look_at_watcher(s);
	return s->pod_is_over ? err_set(e, -ESRCH, "the pod has ended") : 0;
}

void shim_look_at_watcher(struct shim *s)
{
	struct err e = ERR_INIT;
	if (!s->events || !pod_events_are_over(s->events))
		return;
	if (pod_events_result(s->events, &e) < 0)
		on_problem(s, &e);
	pod_events_free(s->events);
	s->events = NULL;
}
