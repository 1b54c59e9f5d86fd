/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/stream.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "stage1/agent/first.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

/* A stream whose other end, device and agent, is played by the test. */
struct ctx {
	struct loop loop;
	struct stream stream;
	int listener, peer;
	int pipe[2];
	int ends;
	char why[ERR_TEXT_MAX];
};

static void on_end(void *arg, struct stream *s, const struct err *why)
{
	struct ctx *c = arg;
	assert_ptr_equal(s, &c->stream);
	c->ends++;
	snprintf(c->why, sizeof(c->why), "%s", why ? why->text : "");
}

static void turns(struct ctx *c)
{
	struct epoll_event ev;
	while (epoll_wait(c->loop.epoll_fd, &ev, 1, 0) > 0)
		assert_int_equal(loop_turn(&c->loop), 0);
}

static void says(struct ctx *c, const void *data, size_t len)
{
	assert_int_equal(write(c->peer, data, len), (ssize_t)len);
	turns(c);
}

static void replies(struct ctx *c, const char *json)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(frame_append(&b, json, strlen(json)), 0);
	says(c, buf_data(&b), buf_len(&b));
}

static void setup_logged(void **state, struct ctx *c, enum agent_stream kind, struct applog *log)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	unlink(FAKE_AGENT_SOCKET);
	c->listener = unix_listen(FAKE_AGENT_SOCKET, 0600);
	assert_int_equal(pipe2(c->pipe, O_CLOEXEC), 0);
	struct stream_plan plan = { .route = fake_backend.route,
				    .attach = { .app = "a", .stream = kind },
				    .in_fd = c->pipe[0],
				    .out_fd = c->pipe[1],
				    .log = log };
	memset(plan.attach.secret, '0', AGENT_SECRET_LEN);
	assert_int_equal(stream_open(&c->stream, &c->loop, &plan, on_end, c), 0);
	c->peer = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
	turns(c);
	assert_int_equal(c->stream.state, STREAM_CONNECTED);
}

static void setup(void **state, struct ctx *c, enum agent_stream kind)
{
	setup_logged(state, c, kind, NULL);
}

/* The app exists: the request goes out. */
static void attach(struct ctx *c)
{
	char request[1024];
	stream_app_exists(&c->stream);
	assert_int_equal(c->stream.state, STREAM_ATTACHING);
	ssize_t n = read(c->peer, request, sizeof(request) - 1);
	assert_true(n > FRAME_HEADER_LEN);
	request[n] = '\0';
	assert_non_null(strstr(request + FRAME_HEADER_LEN, "stream.attach"));
}

static void teardown(struct ctx *c)
{
	stream_close(&c->stream);
	fd_close(c->peer);
	fd_close(c->listener);
	fd_close(c->pipe[0]);
	fd_close(c->pipe[1]);
	loop_deinit(&c->loop);
	assert_int_equal(chdir("/"), 0);
}

/* Bytes that come right behind the reply are output. The agent waits for the answer to its end. */
static void test_output(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDOUT);
	attach(&c);
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}";
	assert_int_equal(frame_append(&b, reply, strlen(reply)), 0);
	assert_int_equal(buf_puts(&b, "early "), 0);
	says(&c, buf_data(&b), buf_len(&b));
	says(&c, "late", 4);
	char got[32] = { 0 };
	assert_true(read(c.pipe[0], got, sizeof(got)) > 0);
	if (strlen(got) < 10)
		assert_true(read(c.pipe[0], got + strlen(got), 16) > 0);
	assert_string_equal(got, "early late");
	assert_int_equal(shutdown(c.peer, SHUT_WR), 0);
	turns(&c);
	assert_int_equal(c.ends, 1);
	assert_string_equal(c.why, "");
	assert_int_equal(recv(c.peer, got, sizeof(got), MSG_DONTWAIT), 0);
	teardown(&c);
}

/* Output goes to its reader and into the log, also what is not a line. */
static void test_output_and_log(void **state)
{
	struct ctx c;
	CLEANUP(applog_deinit) struct applog log;
	cleanup_free char *text = NULL;
	size_t len;
	char got[32] = { 0 };
	applog_init(&log);
	assert_int_equal(applog_open(&log, fixture_dir(state), "a"), 0);
	setup_logged(state, &c, AGENT_STREAM_STDERR, &log);
	attach(&c);
	replies(&c, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
	says(&c, "one\ntwo", 7);
	assert_int_equal(read(c.pipe[0], got, sizeof(got)), 7);
	assert_string_equal(got, "one\ntwo");
	c.peer = fd_close(c.peer);
	turns(&c);
	assert_int_equal(c.ends, 1);
	assert_int_equal(file_read_at(log.dir_fd, "a", 1024, &text, &len), 0);
	assert_non_null(strstr(text, " stderr F one\n"));
	assert_non_null(strstr(text, " stderr P two\n"));
	assert_int_equal(log.lost, 0);
	teardown(&c);
}

static void test_input(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDIN);
	attach(&c);
	replies(&c, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
	assert_int_equal(write(c.pipe[1], "typed", 5), 5);
	c.pipe[1] = fd_close(c.pipe[1]);
	turns(&c);
	char got[16] = { 0 };
	assert_int_equal(read(c.peer, got, sizeof(got)), 5);
	assert_string_equal(got, "typed");
	assert_int_equal(read(c.peer, got, sizeof(got)), 0); /* half-closed */
	assert_int_equal(c.ends, 0);                         /* what is on its way would be lost */
	c.peer = fd_close(c.peer);
	turns(&c);
	assert_int_equal(c.ends, 1);
	teardown(&c);
}

static void test_refused(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDOUT);
	attach(&c);
	replies(&c,
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32003,\"message\":\"no\"}}");
	assert_int_equal(c.ends, 1);
	assert_string_equal(c.why, "no"); /* the agent's words */
	teardown(&c);
}

/* Replies that are none, too long or cut off end the stream with a reason. */
static void test_bad_replies(void **state)
{
	static const unsigned char zero[4] = { 0 };
	static const unsigned char huge[4] = { 0xff, 0xff, 0xff, 0xff };
	unsigned char endless[FIRST_REPLY_MAX] = { 0, 0, 0xff, 0xff };
	const struct {
		const void *data;
		size_t len;
	} cases[] = { { zero, 4 }, { huge, 4 }, { endless, sizeof(endless) } };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ctx c;
		setup(state, &c, AGENT_STREAM_STDOUT);
		attach(&c);
		says(&c, cases[i].data, cases[i].len);
		assert_int_equal(c.ends, 1);
		assert_true(strlen(c.why) > 0);
		teardown(&c);
	}
}

/* A reply to something else, or a request, is none. */
static void test_wrong_replies(void **state)
{
	static const char *const replies_of[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":4294967295,\"error\":{\"code\":1,\"message\":\"m\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(replies_of); i++) {
		struct ctx c;
		setup(state, &c, AGENT_STREAM_STDOUT);
		attach(&c);
		replies(&c, replies_of[i]);
		assert_int_equal(c.ends, 1);
		assert_string_equal(
			c.why, "stdout of app \"a\": the agent does not attach it: Protocol error");
		teardown(&c);
	}
}

/*
 * A reply in pieces; between them the loop has nothing to do, so that it costs no processor time.
 */
static void test_reply_in_pieces(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDOUT);
	attach(&c);
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}";
	assert_int_equal(frame_append(&b, reply, strlen(reply)), 0);
	for (size_t i = 0; i < buf_len(&b); i++) {
		assert_int_equal(c.stream.state, STREAM_ATTACHING);
		says(&c, buf_data(&b) + i, 1); /* returns when the loop has nothing to do */
	}
	assert_int_equal(c.stream.state, STREAM_FLOWING);
	assert_int_equal(c.ends, 0);
	teardown(&c);
}

/* The other end goes where the reply should be. */
static void test_hung_up(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDOUT);
	attach(&c);
	says(&c, "\0\0", 2);
	assert_int_equal(shutdown(c.peer, SHUT_RDWR), 0);
	turns(&c);
	assert_int_equal(c.ends, 1);
	assert_string_equal(c.why, "stdout of app \"a\": the pod has ended, or its agent: "
				   "Connection reset by peer");
	teardown(&c);
}

/* The timer is moved to now instead of waiting for it. */
static void test_no_reply(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDOUT);
	assert_null(c.stream.limit.loop); /* the app may come at any time */
	attach(&c);
	says(&c, "\0\0", 2);
	assert_non_null(c.stream.limit.loop);
	c.stream.limit.deadline_ns = 0;
	assert_int_equal(loop_turn(&c.loop), 0);
	assert_int_equal(c.ends, 1);
	assert_string_equal(
		c.why, "stdout of app \"a\": the agent does not attach it: Connection timed out");
	assert_true(send(c.peer, "x", 1, MSG_NOSIGNAL) < 0); /* too late for any effect */
	turns(&c);
	assert_int_equal(c.ends, 1);
	teardown(&c);
}

static void test_agent_hangs_up(void **state)
{
	struct ctx c;
	setup(state, &c, AGENT_STREAM_STDERR);
	attach(&c);
	c.peer = fd_close(c.peer);
	turns(&c);
	assert_int_equal(c.ends, 1);
	assert_non_null(strstr(c.why, "stderr"));
	teardown(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_output),          fixture_test(test_input),
		fixture_test(test_refused),         fixture_test(test_bad_replies),
		fixture_test(test_agent_hangs_up),  fixture_test(test_wrong_replies),
		fixture_test(test_reply_in_pieces), fixture_test(test_no_reply),
		fixture_test(test_hung_up),         fixture_test(test_output_and_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
