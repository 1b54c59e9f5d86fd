/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stage1/apps/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/stage1.h"

static void on_started(void *arg)
{
	(void)arg;
}

static void on_exited(void *arg, int status, bool on_request)
{
	struct ctx *c = arg;
	c->exits++;
	c->exit_status = status;
	c->exit_on_request = on_request;
}

static void on_stream_ended(void *arg, const struct err *why)
{
	struct ctx *c = arg;
	c->stream_errors += why != NULL;
}

static void on_failed(void *arg, const struct err *why)
{
	struct ctx *c = arg;
	(void)why;
	c->failures++;
}

static void on_done(void *arg, uint64_t token, const struct err *why)
{
	struct ctx *c = arg;
	assert_int_equal(c->told[token].code, 1); /* once */
	c->told[token] = why ? *why : ERR_INIT;
}

static const struct apps_ops apps_ops = { on_started, on_exited, on_stream_ended, on_failed,
					  on_done };

static void on_reply(void *arg, int id, const struct rpc_msg *msg)
{
	struct ctx *c = arg;
	apps_take_reply(c->apps, id, msg);
}

static void on_notification(void *arg, const struct rpc_msg *msg)
{
	struct ctx *c = arg;
	struct agent_app_exited m;
	assert_int_equal(agent_app_exited_decode(msg->body, &m), 0);
	c->exited_result = apps_take_exited(c->apps, &m);
}

static void on_closed(void *arg, const struct err *why)
{
	(void)arg;
	(void)why;
}

static const struct control_ops control_ops = { on_reply, on_notification, on_closed };

/* ---- the pod ---- */

static void put_app(void **state, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s", name);
	mkdirat(fixture_dir(state), path, 0750);
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s/" POD_FILE_ROOTFS, name);
	fixture_write(state, path, "x", 1);
}

/* A pod whose manifest has app0 to app31, web and other. */
static void put_pod(void **state)
{
	static const char *const more[] = { "web", "other", "late" };
	cleanup_buf struct buf b;
	char name[16];
	buf_init(&b, 65536);
	mkdirat(fixture_dir(state), POD_DIR_APPS, 0750);
	mkdirat(fixture_dir(state), POD_DIR_STATUS, 0750);
	buf_puts(&b, "{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"annotations\":["
		     "{\"name\":\"husk/mutable\",\"value\":\"true\"}],\"apps\":[");
	for (int i = 0; i < AGENT_APPS_MAX; i++) {
		if (i < (int)ARRAY_SIZE(more))
			snprintf(name, sizeof(name), "%s", more[i]);
		else
			snprintf(name, sizeof(name), "app%d", i);
		put_app(state, name);
		buf_printf(&b,
			   "%s{\"name\":\"%s\",\"image\":{\"id\":\"sha256-00\"},"
			   "\"app\":{\"exec\":[\"/bin/true\"],\"workingDirectory\":\"/\"%s}}",
			   i > 0 ? "," : "", name,
			   strcmp(name, "late") == 0
				   ? ",\"isolators\":[{\"name\":\"husk/stop-signal\",\"value\":3}]"
				   : "");
	}
	assert_int_equal(buf_puts(&b, "]}"), 0);
	fixture_write(state, POD_FILE_MANIFEST, buf_data(&b), buf_len(&b));
}

void setup(void **state, struct ctx *c)
{
	struct err e = ERR_INIT;
	int ends[2];
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < TOKENS_MAX; i++)
		c->told[i].code = 1;
	put_pod(state);
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(loop_init(&c->loop), 0);
	unlink(FAKE_AGENT_SOCKET);
	c->listener = unix_listen(FAKE_AGENT_SOCKET, 0600);
	assert_int_equal(unix_pair(ends), 0);
	assert_int_equal(fd_set_nonblock(ends[0], true), 0);
	assert_int_equal(fd_set_nonblock(ends[1], true), 0);
	c->peer = ends[1];
	buf_init(&c->from_us, FRAME_MAX);
	assert_int_equal(control_open(&c->control, &c->loop, ends[0], &control_ops, c), 0);
	c->plan.is_mutable = true;
	const struct apps_config config = {
		.loop = &c->loop,
		.timeline = &c->timeline,
		.plan = &c->plan,
		.secret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
		.pod_fd = fixture_dir(state),
		.backend = &fake_backend,
		.pod = &c->pod,
		.only_log = true,
		.control = &c->control,
	};
	assert_int_equal(apps_new(&config, &apps_ops, c, &c->apps, &e), 0);
}

void teardown(struct ctx *c)
{
	apps_free(c->apps);
	control_close(&c->control);
	assert_null(c->loop.timers);
	loop_deinit(&c->loop);
	buf_deinit(&c->from_us);
	fd_close(c->peer);
	fd_close(c->listener);
	for (size_t i = 0; i < c->n_streams; i++)
		fd_close(c->streams[i]);
	assert_int_equal(chdir("/"), 0);
}

bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* ---- time and the backend ---- */

static bool is_something_due(struct ctx *c)
{
	struct epoll_event ev;
	int64_t now = clock_monotonic_ns();
	for (struct loop_timer *t = c->loop.timers; t; t = t->next)
		if (t->deadline_ns <= now)
			return true;
	return epoll_wait(c->loop.epoll_fd, &ev, 1, 0) > 0;
}

static void backend_answers(struct ctx *c)
{
	bool refuses = c->pod.jobs[0].unplug ? c->refuses_unplug : c->refuses_plug;
	fake_backend_answer(&c->pod, refuses ? "refused" : NULL, true);
}

/* All that happens by itself. */
void turns(struct ctx *c)
{
	for (;;) {
		if (c->pod.n_jobs > 0 && !c->is_silent)
			backend_answers(c);
		else if (is_something_due(c))
			assert_int_equal(loop_turn(&c->loop), 0);
		else
			return;
	}
}

/* Every time limit that is armed is over. */
void time_passes(struct ctx *c)
{
	for (struct loop_timer *t = c->loop.timers; t; t = t->next)
		t->deadline_ns = 0;
	turns(c);
}

/* ---- the agent ---- */

/* The next request is @method of app @app. */
/* The next message of ours; a message that must not be there if @ret is NULL. */
static void next_message(struct ctx *c, struct rpc_msg *ret)
{
	const char *payload;
	size_t len;
	char *where;
	turns(c);
	assert_int_equal(buf_reserve(&c->from_us, buf_room(&c->from_us), &where), 0);
	ssize_t n = read(c->peer, where, buf_room(&c->from_us));
	buf_commit(&c->from_us, n > 0 ? (size_t)n : 0);
	if (!ret) {
		assert_int_equal(buf_len(&c->from_us), 0);
		return;
	}
	assert_int_equal(frame_peek(&c->from_us, &payload, &len), 0);
	assert_int_equal(rpc_decode(payload, len, ret), 0);
	frame_consume(&c->from_us, len);
}

void expect_message(struct ctx *c, const char *method, struct rpc_msg *ret)
{
	next_message(c, ret);
	assert_string_equal(ret->method, method);
	c->id = ret->id;
}

void expect_call(struct ctx *c, const char *method, const char *app, int64_t sig)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	const char *name;
	int64_t number = 0;
	bool all = false;
	expect_message(c, method, &m);
	assert_int_equal(json_get_str(m.body, "app", AGENT_NAME_MAX, &name), 0);
	assert_string_equal(name, app);
	json_get_int(m.body, "signal", 0, AGENT_SIGNAL_MAX, &number);
	if (json_get_bool(m.body, "all", &all) == 0 && all)
		number = -number;
	assert_int_equal(number, sig);
}

void expect_no_call(struct ctx *c)
{
	next_message(c, NULL);
}

void agent_says(struct ctx *c, const char *json)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(frame_append(&b, json, strlen(json)), 0);
	assert_int_equal(fd_write_all(c->peer, buf_data(&b), buf_len(&b)), 0);
	turns(c);
}

void agent_agrees(struct ctx *c)
{
	char json[128];
	snprintf(json, sizeof(json), "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{}}",
		 (long long)c->id);
	agent_says(c, json);
}

void agent_refuses(struct ctx *c, const char *text)
{
	char json[256];
	snprintf(json, sizeof(json),
		 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32000,\"message\":\"%s\"}}",
		 (long long)c->id, text);
	agent_says(c, json);
}

void app_ends(struct ctx *c, const char *app, int code, int sig, bool oom)
{
	char json[256];
	snprintf(json, sizeof(json),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"app.exited\",\"params\":{\"app\":\"%s\","
		 "\"code\":%d,\"signal\":%d,\"oom\":%s,\"message\":\"\"}}",
		 app, code, sig, oom ? "true" : "false");
	c->exited_result = 1;
	agent_says(c, json);
}

void app_exits(struct ctx *c, const char *app, int code, int sig)
{
	app_ends(c, app, code, sig, false);
}

/* Accepts a stream of the app that was started, and its attachment. */
void take_stream(struct ctx *c)
{
	static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}";
	cleanup_buf struct buf b;
	char text[1024];
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0 && c->n_streams < STREAMS_MAX);
	c->streams[c->n_streams++] = fd;
	turns(c);
	assert_true(read(fd, text, sizeof(text)) > FRAME_HEADER_LEN);
	buf_init(&b, FRAME_MAX);
	assert_int_equal(frame_append(&b, reply, strlen(reply)), 0);
	assert_int_equal(fd_write_all(fd, buf_data(&b), buf_len(&b)), 0);
	turns(c);
}

void end_streams(struct ctx *c)
{
	while (c->n_streams > 0)
		fd_close(c->streams[--c->n_streams]);
	turns(c);
}

/* ---- requests ---- */

int ask_with_grace(struct ctx *c, enum app_verb verb, const char *app, int64_t grace_ms,
		   struct err *e)
{
	struct app_request q = { .verb = verb, .grace_ms = grace_ms };
	assert_int_equal(str_copy(q.app, sizeof(q.app), app), 0);
	assert_true(++c->last_token < TOKENS_MAX);
	return apps_request(c->apps, &q, c->last_token, e);
}

/* Asks for what takes a while; the token of the request. */
uint64_t begin(struct ctx *c, enum app_verb verb, const char *app)
{
	struct err e = ERR_INIT;
	assert_int_equal(ask_with_grace(c, verb, app, AGENT_GRACE_MS_MAX, &e), APPS_PENDING);
	turns(c);
	return c->last_token;
}

void refused(struct ctx *c, enum app_verb verb, const char *app, int code, const char *text)
{
	struct err e = ERR_INIT;
	assert_int_equal(ask_with_grace(c, verb, app, 0, &e), code);
	assert_string_equal(e.text, text);
}

void told(struct ctx *c, uint64_t token, const char *error)
{
	if (c->told[token].code > 0)
		fail_msg("nobody was told of the end of a request (\"%s\")", error ? error : "");
	assert_string_equal(c->told[token].text, error ? error : "");
}

void not_told(struct ctx *c, uint64_t token)
{
	assert_int_equal(c->told[token].code, 1);
}

void add(struct ctx *c, const char *app)
{
	uint64_t t = begin(c, APP_VERB_ADD, app);
	expect_call(c, AGENT_APP_ADD, app, 0);
	agent_agrees(c);
	told(c, t, NULL);
}

void start(struct ctx *c, const char *app)
{
	uint64_t t = begin(c, APP_VERB_START, app);
	expect_call(c, AGENT_APP_START, app, 0);
	agent_agrees(c);
	told(c, t, NULL);
	take_stream(c);
	take_stream(c);
}
