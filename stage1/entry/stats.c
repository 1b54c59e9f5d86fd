/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. One event loop, one control connection. The hello and the first calls are
 * sent in one go; each reply makes room for the next call. It is over when all apps are answered,
 * when the connection ends, or after the limit: then the rest gets the reason, and closing the
 * connection is what makes the agent give up.
 */
#include "stage1/entry/stats.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/loop.h"
#include "stage1/agent/control.h"

#define CALL_HELLO     0
#define CALL_INFO      1
#define CALL_FIRST_APP 2 /* and one for each further app */

struct asker {
	struct loop loop;
	struct dial dial;
	struct control control;
	struct loop_timer limit;
	const char *secret;
	struct stats_app *apps;
	size_t n;
	size_t n_sent, n_answered;
	struct agent_info *guest;
	bool guest_answered;
};

/* What is not answered by now never will be. */
static void give_up(struct asker *s, int code, const char *why)
{
	for (size_t i = 0; i < s->n; i++) {
		struct stats_app *app = &s->apps[i];
		if (!app->answered)
			err_set(&app->why, code, "app \"%s\": %s", app->name, why);
		app->answered = true;
	}
	loop_quit(&s->loop);
}

static int send_app(struct asker *s, size_t i)
{
	struct agent_app_ref m;
	struct json_object *body = NULL;
	memcpy(m.app, s->apps[i].name, sizeof(m.app));
	int r = agent_app_ref_encode(&m, &body);
	return r < 0 ? r
		     : control_call(&s->control, CALL_FIRST_APP + (int)i, AGENT_APP_STATS, body);
}

static int send_apps(struct asker *s)
{
	int r = 0;
	while (r == 0 && s->n_sent < s->n && s->n_sent - s->n_answered < STATS_AT_ONCE)
		r = send_app(s, s->n_sent++);
	return r;
}

static void take_answer(struct asker *s, struct stats_app *app, const struct rpc_msg *msg)
{
	if (msg->kind == RPC_ERROR)
		err_set(&app->why, -EPROTO, "%s", msg->text);
	else if (agent_app_stats_decode(msg->body, &app->counts) < 0)
		err_set(&app->why, -EBADMSG, "app \"%s\": the agent sent no statistics", app->name);
	app->answered = true;
	s->n_answered++;
}

static void take_info(struct asker *s, const struct rpc_msg *msg)
{
	struct agent_info info;
	if (msg->kind != RPC_ERROR && agent_info_decode(msg->body, &info) == 0)
		*s->guest = info;
	s->guest_answered = true;
}

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct asker *s = ctx;
	if (id == CALL_HELLO) {
		if (msg->kind == RPC_ERROR)
			give_up(s, -EPROTO, msg->text);
		return;
	}
	if (id == CALL_INFO)
		take_info(s, msg);
	else
		take_answer(s, &s->apps[id - CALL_FIRST_APP], msg);
	if (s->n_answered == s->n && s->guest_answered)
		loop_quit(&s->loop);
	else if (send_apps(s) < 0)
		give_up(s, -EIO, "cannot ask the agent");
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	(void)ctx;
	(void)msg; /* how apps end is not ours to tell */
}

static void on_closed(void *ctx, const struct err *why)
{
	give_up(ctx, why->code, "the pod has ended, or its agent");
}

static const struct control_ops control_ops = {
	.reply = on_reply,
	.notification = on_notification,
	.closed = on_closed,
};

_Static_assert(CALL_FIRST_APP + AGENT_APPS_MAX <= CONTROL_CALLS_MAX, "a call for each app");

static void on_dialed(void *ctx, int fd)
{
	struct asker *s = ctx;
	int r = fd < 0 ? fd : control_open(&s->control, &s->loop, fd, &control_ops, s);
	if (r == 0)
		r = control_hello(&s->control, CALL_HELLO, s->secret);
	if (r == 0)
		r = control_call(&s->control, CALL_INFO, AGENT_INFO, NULL);
	if (r == 0)
		r = send_apps(s);
	if (r < 0)
		give_up(s, r, "cannot reach the agent");
}

static void on_limit(void *ctx)
{
	give_up(ctx, -ETIMEDOUT, "the agent does not answer");
}

static int ask(struct asker *s, const struct agent_route *route, int64_t limit_ms)
{
	int r = loop_init(&s->loop);
	if (r < 0)
		return r;
	loop_timer_arm(&s->loop, &s->limit, clock_monotonic_ns() + limit_ms * NS_PER_MS, on_limit,
		       s);
	r = dial_start(&s->dial, &s->loop, route, AGENT_PORT, on_dialed, s);
	return r < 0 ? r : loop_run(&s->loop);
}

void stats_ask(const struct agent_route *route, const char *secret, int64_t limit_ms,
	       struct stats_app *apps, size_t n, struct agent_info *ret_guest)
{
	struct asker s = { .loop = { .epoll_fd = -EBADF },
			   .secret = secret,
			   .apps = apps,
			   .n = n,
			   .guest = ret_guest };
	if (ask(&s, route, limit_ms) < 0)
		give_up(&s, -EIO, "cannot reach the agent");
	loop_timer_disarm(&s.limit);
	dial_stop(&s.dial);
	control_close(&s.control);
	loop_deinit(&s.loop);
}

/* ---- the document ---- */

static int put_cost(struct json_object *doc, const char *key, const struct cost *c)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_int(obj, "pid", c->pid);
	if (r == 0)
		r = json_put_int(obj, "cpu_usec", c->cpu_usec);
	if (r == 0)
		r = json_put_int(obj, "rss_bytes", c->rss_bytes);
	if (r == 0 && c->pss_bytes >= 0)
		r = json_put_int(obj, "pss_bytes", c->pss_bytes);
	return r == 0 ? json_put(doc, key, TAKE_PTR(obj)) : r;
}

/* The members of the agent's reply, behind the name. */
static int put_counts(struct json_object *obj, const struct agent_app_stats *m)
{
	cleanup_json struct json_object *counts = NULL;
	int r = agent_app_stats_encode(m, &counts);
	if (r < 0)
		return r;
	json_object_object_foreach(counts, key, value)
	{
		if (r == 0)
			r = json_object_object_add(obj, key, json_object_get(value));
	}
	return r < 0 ? -ENOMEM : 0;
}

static int add_app(struct json_object *list, const struct stats_app *app)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_str(obj, "name", app->name);
	if (r == 0 && app->why.code < 0) {
		char text[ERR_TEXT_MAX];
		str_copy_text(text, sizeof(text), app->why.text);
		r = json_put_str(obj, "error", text);
	} else if (r == 0) {
		r = put_counts(obj, &app->counts);
	}
	return r < 0 ? r : json_append(list, TAKE_PTR(obj));
}

static int put_apps(struct json_object *doc, const struct stats_app *apps, size_t n)
{
	cleanup_json struct json_object *list = json_object_new_array();
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_app(list, &apps[i]);
	return r == 0 ? json_put(doc, "apps", TAKE_PTR(list)) : r;
}

static int put_total(struct json_object *doc, const struct agent_app_stats *m)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = put_counts(obj, m);
	return r < 0 ? r : json_put(doc, "total", TAKE_PTR(obj));
}

static int put_guest(struct json_object *doc, const struct agent_info *m)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_int(obj, "memory_total_bytes", m->memory_total);
	if (r == 0 && m->cpus >= 0)
		r = json_put_int(obj, "cpus", m->cpus);
	if (r == 0 && m->memory_free >= 0)
		r = json_put_int(obj, "memory_free_bytes", m->memory_free);
	if (r == 0 && m->memory_available >= 0)
		r = json_put_int(obj, "memory_available_bytes", m->memory_available);
	return r < 0 ? r : json_put(doc, "guest", TAKE_PTR(obj));
}

struct json_object *stats_json(const struct stats_document *d)
{
	cleanup_json struct json_object *doc = json_object_new_object();
	int r = d->uuid ? json_put_str(doc, "pod", d->uuid) : 0;
	if (r == 0 && d->total)
		r = put_total(doc, d->total);
	if (r == 0 && d->guest.memory_total >= 0)
		r = put_guest(doc, &d->guest);
	if (r == 0)
		r = put_cost(doc, "supervisor", &d->cost->supervisor);
	for (size_t i = 0; r == 0 && i < d->cost->n_helpers; i++)
		r = put_cost(doc, d->cost->helper_names[i], &d->cost->helpers[i]);
	if (r == 0 && d->scratch_bytes >= 0)
		r = json_put_int(doc, "scratch_bytes", d->scratch_bytes);
	if (r == 0)
		r = put_apps(doc, d->apps, d->n_apps);
	return r < 0 ? NULL : TAKE_PTR(doc);
}
