/* SPDX-License-Identifier: Apache-2.0 */
/* What a container uses, and may use: Stats, Update, Pause, Resume. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "shim/task/metrics.h"
#include "shim/task/task_int.h"

/* ---- Stats ---- */

static int job_count(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	return husk_count_app(&c->shim->place, c->shim->uuid, c->app, text, JOB_TEXT_MAX + 1, e);
}

/* As the host has control groups: what its tools read. */
static bool host_has_v2(void)
{
	struct statfs st;
	return statfs("/sys/fs/cgroup", &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC;
}

static int read_counts(const char *text, struct agent_app_stats *ret)
{
	cleanup_json struct json_object *body = NULL;
	int r = json_parse(text, strlen(text), &body);
	return r < 0 ? r : agent_app_stats_decode(body, ret);
}

static void answer_stats(struct shim *s, uint64_t token, const struct agent_app_stats *counts)
{
	Task__Any any;
	Task__StatsResponse m;
	const char *type;
	size_t len = 0;
	cleanup_free uint8_t *bytes = metrics_pack(counts, host_has_v2(), &len, &type);
	if (!bytes) {
		shim_refuse_text(s, token, -ENOMEM, "out of memory");
		return;
	}
	task__any__init(&any);
	task__stats_response__init(&m);
	any.type_url = proto_text(type);
	any.value.data = bytes;
	any.value.len = len;
	m.stats = &any;
	answer_with(s->server, token, &m.base);
}

static void answer_counting(struct container *c, const struct agent_app_stats *counts)
{
	for (size_t i = 0; i < c->n_counting; i++)
		answer_stats(c->shim, c->counting[i], counts);
	c->n_counting = 0;
}

static void refuse_counting(struct container *c, int r, const char *text)
{
	for (size_t i = 0; i < c->n_counting; i++)
		shim_refuse_text(c->shim, c->counting[i], r, text);
	c->n_counting = 0;
}

static void on_count_late(void *ctx)
{
	struct container *c = ctx;
	c->shim->is_silent = true;
	refuse_counting(c, -EIO, "the pod takes too long to say what it uses");
}

static void on_counted(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	struct agent_app_stats counts;
	bool fine = end->result == 0 && read_counts(end->text, &counts) == 0;
	c->counter = NULL;
	if (fine && c->count_late.loop)
		c->shim->is_silent = false;
	loop_timer_disarm(&c->count_late);
	if (fine)
		answer_counting(c, &counts);
	else
		refuse_counting(c, c->init.has_ended ? -ESRCH : -EIO,
				end->result < 0 ? end->e->text : "the counts are not understood");
}

static int begin_counting(struct container *c)
{
	struct loop *loop = c->shim->loop;
	int r = job_start(loop, job_count, c, JOB_BOUND, on_counted, c, &c->counter);
	if (r == 0)
		loop_timer_arm(loop, &c->count_late, clock_monotonic_ns() + GUEST_MS * NS_PER_MS,
			       on_count_late, c);
	return r;
}

void container_count(struct container *c, uint64_t token)
{
	struct shim *s = c->shim;
	if (c->init.status != PROCESS_RUNNING && c->init.status != PROCESS_PAUSED)
		shim_refuse_text(s, token, c->init.status == PROCESS_CREATED ? -EBUSY : -ESRCH,
				 "the container does not run");
	else if (c->n_counting == CONTAINER_COUNTING_MAX)
		shim_refuse_text(s, token, -ENOMEM, "too many ask what the container uses");
	else if (!c->counter && begin_counting(c) < 0)
		shim_refuse_text(s, token, -ENOMEM, "cannot create a process");
	else if (s->is_silent || !c->count_late.loop)
		shim_refuse_text(s, token, -EIO,
				 "the pod took too long to say what it uses; it is asked again");
	else
		c->counting[c->n_counting++] = token; /* one answer for all */
}

void container_drop_counting(struct container *c)
{
	job_free(c->counter);
	c->counter = NULL;
	loop_timer_disarm(&c->count_late);
	refuse_counting(c, -ESRCH, "the container is gone");
}

/* ---- Pause, Resume ---- */

static int job_pause(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_pause_app(&c->shim->place, c->shim->uuid, c->app, c->pauses, e);
}

static void publish_paused(const struct container *c)
{
	Task__TaskPaused m; /* TaskResumed is the same */
	task__task_paused__init(&m);
	m.container_id = c->id;
	publisher_publish(c->shim->publisher, c->pauses ? "/tasks/paused" : "/tasks/resumed",
			  c->pauses ? "containerd.events.TaskPaused"
				    : "containerd.events.TaskResumed",
			  &m.base);
}

static void on_paused(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	c->may_stand_still = c->pauses && end->result < 0;
	if (c->init.has_ended) {
		shim_refuse_text(c->shim, c->token, -ESRCH, "the container has ended");
		return;
	}
	if (end->result < 0) {
		shim_refuse(c->shim, c->token, end->e);
		return;
	}
	c->init.status = c->pauses ? PROCESS_PAUSED : PROCESS_RUNNING;
	publish_paused(c);
	shim_answer_empty(c->shim, c->token);
}

void container_pause(struct container *c, uint64_t token, bool pause)
{
	bool is_apt = c->init.status == (pause ? PROCESS_RUNNING : PROCESS_PAUSED) ||
		      (!pause && c->init.status == PROCESS_RUNNING && c->may_stand_still);
	if (!is_apt || c->init.has_ended) {
		shim_refuse_text(c->shim, token, -EBUSY,
				 pause ? "the container does not run"
				       : "the container is not paused");
		return;
	}
	if (!c->job)
		c->pauses = pause;
	container_begin(c, token, job_pause, on_paused);
}

/* ---- Update ---- */

static int job_update(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_update_app(&c->shim->place, c->shim->uuid, c->app, c->wanted, e);
}

static void on_update_late(void *ctx)
{
	struct container *c = ctx;
	container_end_job(c);
	shim_refuse_text(c->shim, c->token, -EIO, "the pod takes too long to set limits");
}

static void on_updated(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	loop_timer_disarm(&c->late);
	if (end->result < 0) {
		shim_refuse(c->shim, c->token, end->e);
		return;
	}
	c->spec.cpu_period = c->wanted_period;
	shim_answer_empty(c->shim, c->token);
}

void shim_update(struct shim *s, uint64_t token, const void *request)
{
	const Task__UpdateRequest *q = request;
	struct err e = ERR_INIT;
	struct limits_change wanted = { .changed = 0 };
	struct container *c = shim_find_made(s, q->id);
	isolators_init(&wanted.values);
	int64_t period = c ? c->spec.cpu_period : 0;
	int r = c ? container_need_app(c, &e) : err_set(&e, -ENOENT, "there is no such container");
	if (r == 0 && c->init.has_ended)
		r = err_set(&e, -ESRCH, "the container has ended");
	if (r == 0 && c->init.status == PROCESS_CREATED)
		r = err_set(&e, -EBUSY, "the container does not run");
	if (r == 0 && q->resources)
		r = oci_resources_parse((const char *)q->resources->value.data,
					q->resources->value.len, &period, &wanted.values,
					&wanted.changed, &e);
	if (r < 0) {
		shim_refuse(s, token, &e);
	} else if (wanted.changed == 0) {
		shim_answer_empty(s, token);
	} else {
		c->wanted = &wanted; /* the child has a copy */
		if (container_begin(c, token, job_update, on_updated) == 0) {
			c->wanted_period = period;
			container_expect_guest(c, on_update_late);
		}
		c->wanted = NULL;
	}
	isolators_deinit(&wanted.values);
}
