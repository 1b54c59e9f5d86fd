/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Against an agent that is played by a child process; how it answers follows from the app's name.
 */
#include "stage1/entry/stats.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WRONG  "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* From here on a limit only keeps a broken test from lasting for ever. */
#define LONG_MS INT64_C(60000)

static struct agent_info guest; /* what the agent has said last */
static int listener;
static pid_t agent;

static void reply_about(const char *app, int64_t id, struct buf *out)
{
	struct agent_app_stats m = { .cpu_usec = 5, .pids = 1, .oom_kills = -1 };
	struct json_object *body = NULL;
	if (strcmp(app, "off") == 0) {
		rpc_append_error(out, id, AGENT_E_STATE, "app \"off\" is not running");
	} else if (strcmp(app, "liar") == 0) {
		m.pids = 0;
		agent_app_stats_encode(&m, &body);
		json_put_int(body, "user_usec", -7);
		rpc_append_result(out, id, body);
	} else if (agent_app_stats_encode(&m, &body) == 0) {
		rpc_append_result(out, id, body);
	}
}

static void reply_info(int64_t id, struct buf *out)
{
	static const struct agent_info info = {
		.memory_total = 1000, .memory_free = 200, .memory_available = -1, .cpus = 2
	};
	struct json_object *body = NULL;
	if (agent_info_encode(&info, &body) == 0)
		rpc_append_result(out, id, body);
}

/* Answers one message. False: the agent ends. */
static bool answer(const struct rpc_msg *msg, struct buf *out)
{
	struct agent_hello hello;
	struct agent_app_ref ref;
	if (strcmp(msg->method, AGENT_HELLO) == 0) {
		bool right = agent_hello_decode(msg->body, &hello) == 0 &&
			     strcmp(hello.secret, SECRET) == 0;
		if (right)
			rpc_append_result(out, msg->id, NULL);
		else
			rpc_append_error(out, msg->id, AGENT_E_SECRET, "wrong secret");
		return right;
	}
	if (strcmp(msg->method, AGENT_INFO) == 0) {
		reply_info(msg->id, out);
		return true;
	}
	if (agent_app_ref_decode(msg->body, &ref) < 0 || strcmp(ref.app, "end") == 0)
		return false;
	if (strcmp(ref.app, "silent") != 0)
		reply_about(ref.app, msg->id, out);
	return true;
}

/*
 * Reads what is still under way: to close a socket with that in it would take back what was sent.
 */
static void hang_up(int fd)
{
	char chunk[4096];
	shutdown(fd, SHUT_WR);
	while (read(fd, chunk, sizeof(chunk)) > 0)
		;
}

static void converse(int fd)
{
	struct buf in, out;
	const char *payload;
	char chunk[4096];
	size_t len;
	buf_init(&in, FRAME_MAX);
	buf_init(&out, FRAME_MAX);
	for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) {
		buf_append(&in, chunk, (size_t)n);
		while (frame_peek(&in, &payload, &len) == 0) {
			struct rpc_msg msg = { 0 };
			if (rpc_decode(payload, len, &msg) < 0)
				return;
			bool more = answer(&msg, &out);
			rpc_msg_deinit(&msg);
			frame_consume(&in, len);
			fd_write_all(fd, buf_data(&out), buf_len(&out));
			buf_consume(&out, buf_len(&out));
			if (!more) {
				hang_up(fd);
				return;
			}
		}
	}
}

static void begin(void **state)
{
	guest.memory_total = -1;
	assert_int_equal(chdir(fixture_path(state)), 0);
	listener = unix_listen(FAKE_AGENT_SOCKET, 0600);
	assert_true(listener >= 0);
	assert_int_equal(fd_set_nonblock(listener, false), 0);
	agent = fork();
	assert_true(agent >= 0);
	if (agent != 0)
		return;
	int fd = accept(listener, NULL, NULL);
	if (fd >= 0)
		converse(fd);
	_exit(0);
}

static void end(void)
{
	kill(agent, SIGKILL);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	fd_close(listener);
	assert_int_equal(chdir("/"), 0);
}

static void set_names(struct stats_app *apps, const char *const *names, size_t n)
{
	memset(apps, 0, n * sizeof(*apps));
	for (size_t i = 0; i < n; i++)
		str_copy(apps[i].name, sizeof(apps[i].name), names[i]);
}

/* More apps than are asked for at a time. */
static void test_answers(void **state)
{
	static const char *const names[] = { "a", "b", "off", "c", "liar", "d", "e" };
	struct stats_app apps[ARRAY_SIZE(names)];
	begin(state);
	set_names(apps, names, ARRAY_SIZE(names));
	stats_ask(fake_backend.route, SECRET, LONG_MS, apps, ARRAY_SIZE(names), &guest);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(apps[i].why.code<0, strlen(names[i])> 1);
	assert_int_equal(apps[6].counts.cpu_usec, 5);
	assert_int_equal(apps[6].counts.oom_kills, -1);
	assert_string_equal(apps[2].why.text, "app \"off\" is not running");
	assert_string_equal(apps[4].why.text, "app \"liar\": the agent sent no statistics");
	assert_int_equal(guest.memory_free, 200);
	end();
}

/* An agent that has no app to tell of still tells of its machine. */
static void test_no_apps(void **state)
{
	begin(state);
	stats_ask(fake_backend.route, SECRET, LONG_MS, NULL, 0, &guest);
	assert_int_equal(guest.memory_total, 1000);
	assert_int_equal(guest.memory_available, -1);
	end();
}

static void expect_failure(void **state, const char *name, const char *secret, int64_t limit_ms,
			   const char *text)
{
	struct stats_app app;
	begin(state);
	set_names(&app, &name, 1);
	stats_ask(fake_backend.route, secret, limit_ms, &app, 1, &guest);
	assert_true(app.why.code < 0);
	assert_string_equal(app.why.text, text);
	end();
	unlink(FAKE_AGENT_SOCKET);
}

static void test_silent(void **state)
{
	expect_failure(state, "silent", SECRET, 10, "app \"silent\": the agent does not answer");
}

static void test_wrong_secret(void **state)
{
	expect_failure(state, "a", WRONG, LONG_MS, "app \"a\": wrong secret");
}

/* What has come before the end counts. */
static void test_end(void **state)
{
	static const char *const names[] = { "a", "end", "b" };
	struct stats_app apps[ARRAY_SIZE(names)];
	begin(state);
	set_names(apps, names, ARRAY_SIZE(names));
	stats_ask(fake_backend.route, SECRET, LONG_MS, apps, ARRAY_SIZE(names), &guest);
	assert_int_equal(apps[0].why.code, 0);
	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		assert_non_null(strstr(apps[i].why.text, ": the pod has ended, or its agent"));
	end();
}

static void test_nobody_there(void **state)
{
	static const char *const names[] = { "a" };
	struct stats_app app;
	guest.memory_total = -1;
	assert_int_equal(chdir(fixture_path(state)), 0);
	unlink(FAKE_AGENT_SOCKET);
	set_names(&app, names, 1);
	stats_ask(fake_backend.route, SECRET, LONG_MS, &app, 1, &guest);
	assert_string_equal(app.why.text, "app \"a\": cannot reach the agent");
	assert_int_equal(guest.memory_total, -1);
}

static void test_document(void **state)
{
	static const char *const names[] = { "a", "b" };
	struct stats_app apps[2];
	struct pod_cost cost = { .supervisor = { 7, 10, 20, 30 },
				 .helpers = { { 8, 1, 2, -1 } },
				 .helper_names = { "vmm" },
				 .n_helpers = 1 };
	const struct agent_app_stats total = { 1,  -1, -1, 2,    3,  -1, 4,  -1, 5,
					       -1, -1, -1, 1500, -1, -1, -1, -1, -1 };
	struct stats_document d = { "UUID", &total,
				    &cost,  { .memory_total = 9, .memory_free = -1, .cpus = 1 },
				    4096,   apps,
				    2 };
	(void)state;
	set_names(apps, names, 2);
	apps[0].counts = (struct agent_app_stats){ 1,  2,  3,  -1, 5,  -1, -1, 8,  -1,
						   10, 11, 12, -1, -1, -1, -1, 18, -1 };
	err_set(&apps[1].why, -EPROTO, "no\xff");
	cleanup_buf struct buf out;
	cleanup_json struct json_object *doc = stats_json(&d);
	buf_init(&out, 4096);
	assert_int_equal(json_write(doc, false, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(
		buf_data(&out),
		"{\"pod\":\"UUID\","
		"\"total\":{\"cpu_usec\":1,\"throttled_usec\":2,\"memory_bytes\":3,\"memory_limit\":4,"
		"\"pids_limit\":5,\"cpu_limit_millis\":1500},"
		"\"guest\":{\"memory_total_bytes\":9,\"cpus\":1,\"memory_available_bytes\":0},"
		"\"supervisor\":{\"pid\":7,\"cpu_usec\":10,\"rss_bytes\":20,\"pss_bytes\":30},"
		"\"vmm\":{\"pid\":8,\"cpu_usec\":1,\"rss_bytes\":2},"
		"\"scratch_bytes\":4096,\"apps\":[{\"name\":\"a\",\"cpu_usec\":1,\"user_usec\":2,"
		"\"system_usec\":3,\"memory_bytes\":5,\"pids\":8,\"io_read_bytes\":10,"
		"\"io_write_bytes\":11,\"oom_kills\":12,\"page_faults\":18},{\"name\":\"b\",\"error\":\"no?\"}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_answers),      fixture_test(test_silent),
		fixture_test(test_wrong_secret), fixture_test(test_end),
		fixture_test(test_nobody_there), fixture_test(test_document),
		fixture_test(test_no_apps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
