/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/agent/control.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "tests/support/fixture.h"

struct ctx {
	struct loop loop;
	struct control control;
	int peer;
	int replies, notifications, closes;
	int last_id;
	struct err why;
	bool close_in_reply;
};

static void on_reply(void *arg, int id, const struct rpc_msg *msg)
{
	struct ctx *c = arg;
	assert_true(msg->kind == RPC_RESULT || msg->kind == RPC_ERROR);
	c->replies++;
	c->last_id = id;
	if (c->close_in_reply)
		control_close(&c->control);
}

static void on_notification(void *arg, const struct rpc_msg *msg)
{
	struct ctx *c = arg;
	(void)msg;
	c->notifications++;
}

static void on_closed(void *arg, const struct err *why)
{
	struct ctx *c = arg;
	c->closes++;
	c->why = *why;
}

static const struct control_ops ops = { on_reply, on_notification, on_closed };

static void setup(struct ctx *c)
{
	int ends[2];
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	assert_int_equal(unix_pair(ends), 0);
	assert_int_equal(fd_set_nonblock(ends[0], true), 0);
	c->peer = ends[1];
	assert_int_equal(control_open(&c->control, &c->loop, ends[0], &ops, c), 0);
}

static void teardown(struct ctx *c)
{
	control_close(&c->control);
	fd_close(c->peer);
	loop_deinit(&c->loop);
}

/* Sends bytes as the agent and lets the control connection read them all. */
static void agent_sends(struct ctx *c, const void *data, size_t len)
{
	const char *p = data;
	struct epoll_event ev;
	while (len > 0) {
		size_t n = len < 65536 ? len : 65536;
		assert_int_equal(write(c->peer, p, n), (ssize_t)n);
		p += n;
		len -= n;
		while (c->control.loop && epoll_wait(c->loop.epoll_fd, &ev, 1, 0) > 0)
			assert_int_equal(loop_turn(&c->loop), 0);
		if (!c->control.loop)
			return;
	}
}

static void agent_says(struct ctx *c, const char *json)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(frame_append(&b, json, strlen(json)), 0);
	agent_sends(c, buf_data(&b), buf_len(&b));
}

/* What is decoded on the other side is what the agent decodes. */
static void test_hello(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef"
				     "0123456789abcdef0123456789abcdef";
	_Static_assert(sizeof(secret) == AGENT_SECRET_LEN + 1, "a secret of the right length");
	(void)state;
	struct ctx c;
	struct rpc_msg msg;
	struct agent_hello m;
	char request[FRAME_HEADER_LEN + 512];
	setup(&c);
	assert_int_equal(control_hello(&c.control, 3, secret), 0);
	assert_int_equal(control_hello(&c.control, 3, secret), -EBUSY);
	ssize_t n = read(c.peer, request, sizeof(request));
	assert_true(n > FRAME_HEADER_LEN);
	assert_int_equal(rpc_decode(request + FRAME_HEADER_LEN, (size_t)n - FRAME_HEADER_LEN, &msg),
			 0);
	assert_int_equal(msg.id, 3);
	assert_string_equal(msg.method, AGENT_HELLO);
	assert_int_equal(agent_hello_decode(msg.body, &m), 0);
	assert_string_equal(m.secret, secret);
	assert_int_equal(m.version_min, AGENT_VERSION_MIN);
	assert_int_equal(m.version_max, AGENT_VERSION_MAX);
	rpc_msg_deinit(&msg);
	teardown(&c);
}

static void test_call_and_reply(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	assert_int_equal(control_call(&c.control, 7, "agent.info", NULL), 0);
	assert_int_equal(control_call(&c.control, 7, "agent.info", NULL), -EBUSY);
	char request[256];
	ssize_t n = read(c.peer, request, sizeof(request) - 1);
	assert_true(n > FRAME_HEADER_LEN);
	request[n] = '\0';
	assert_non_null(strstr(request + FRAME_HEADER_LEN, "\"agent.info\""));
	agent_says(&c, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
	assert_int_equal(c.replies, 1);
	assert_int_equal(c.last_id, 7);
	assert_int_equal(control_call(&c.control, 7, "agent.info", NULL), 0);
	agent_says(&c, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,\"message\":\"no\"}}");
	assert_int_equal(c.replies, 2);
	agent_says(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}}");
	assert_int_equal(c.notifications, 1);
	assert_int_equal(c.closes, 0);
	teardown(&c);
}

/* Each of these ends the connection, with one report. */
static void test_hostile_agent(void **state)
{
	(void)state;
	static const char *const messages[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}",   /* nobody asked */
		"{\"jsonrpc\":\"2.0\",\"id\":255,\"result\":{}}", /* highest id, not asked */
		"{\"jsonrpc\":\"2.0\",\"id\":256,\"result\":{}}", /* beyond the table */
		"{\"jsonrpc\":\"2.0\",\"id\":4294967295,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.hello\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}{}",
		"{}",
		"[]",
		"null",
		"text",
		"{\"jsonrpc\":\"1.0\",\"id\":5,\"result\":{}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct ctx c;
		setup(&c);
		assert_int_equal(control_call(&c.control, 5, "agent.info", NULL), 0);
		agent_says(&c, messages[i]);
		assert_int_equal(c.closes, 1);
		assert_int_equal(c.replies, 0);
		assert_null(c.control.loop);
		assert_non_null(strstr(c.why.text, "agent"));
		assert_int_equal(control_call(&c.control, 6, "agent.info", NULL), -ENOTCONN);
		teardown(&c);
	}
}

static void test_frame_limits(void **state)
{
	(void)state;
	static const unsigned char zero[] = { 0, 0, 0, 0 };
	static const unsigned char beyond[] = { 0, 0x50, 0, 1 }; /* FRAME_PAYLOAD_MAX + 1 */
	static const unsigned char endless[CONTROL_IN_MAX] = { 0, 0, 0x20, 1 };
	struct ctx c;
	setup(&c);
	agent_sends(&c, zero, sizeof(zero));
	assert_int_equal(c.closes, 1);
	teardown(&c);
	setup(&c);
	agent_sends(&c, beyond, sizeof(beyond));
	assert_int_equal(c.closes, 1);
	teardown(&c);
	setup(&c);
	agent_sends(&c, endless, sizeof(endless) - 1);
	assert_int_equal(c.closes, 0);
	agent_sends(&c, "x", 1);
	assert_int_equal(c.closes, 1);
	assert_string_equal(c.why.text,
			    "agent: sent what is not a message of the protocol: Message too long");
	teardown(&c);
}

/* The largest message is taken, one byte more is not; what is held never exceeds it. */
static void test_largest_frame(void **state)
{
	(void)state;
	static const char message[] = "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}";
	static char text[AGENT_REPLY_MAX + 1];
	memset(text, ' ', sizeof(text));
	memcpy(text, message, sizeof(message) - 1);
	for (size_t len = AGENT_REPLY_MAX; len <= AGENT_REPLY_MAX + 1; len++) {
		struct ctx c;
		setup(&c);
		cleanup_buf struct buf b;
		buf_init(&b, FRAME_MAX);
		assert_int_equal(frame_append(&b, text, len), 0);
		agent_sends(&c, buf_data(&b), buf_len(&b));
		assert_int_equal(c.notifications, len == AGENT_REPLY_MAX);
		assert_int_equal(c.closes, len != AGENT_REPLY_MAX);
		assert_true(c.control.in.alloc <= CONTROL_IN_MAX + 1);
		teardown(&c);
	}
}

/* At once, or with something unread, which a unix socket says and a VM's does not: told alike. */
static void test_peer_gone(void **state)
{
	(void)state;
	for (int unread = 0; unread <= 1; unread++) {
		struct ctx c;
		setup(&c);
		assert_int_equal(write(c.control.fd, "x", (size_t)unread), unread);
		close(c.peer);
		c.peer = -EBADF;
		assert_int_equal(loop_turn(&c.loop), 0);
		assert_int_equal(c.closes, 1);
		assert_string_equal(c.why.text,
				    "agent: ended the connection: Connection reset by peer");
		teardown(&c);
	}
}

static void test_close_inside_callback(void **state)
{
	(void)state;
	struct ctx c;
	setup(&c);
	c.close_in_reply = true;
	assert_int_equal(control_call(&c.control, 0, "agent.info", NULL), 0);
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}";
	static const char more[] = "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}";
	assert_int_equal(frame_append(&b, reply, strlen(reply)), 0);
	assert_int_equal(frame_append(&b, more, strlen(more)), 0);
	agent_sends(&c, buf_data(&b), buf_len(&b));
	assert_int_equal(c.replies, 1);
	assert_int_equal(c.notifications, 0);
	assert_int_equal(c.closes, 0);
	teardown(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_hello),
		fixture_test(test_call_and_reply),
		fixture_test(test_hostile_agent),
		fixture_test(test_frame_limits),
		fixture_test(test_largest_frame),
		fixture_test(test_peer_gone),
		fixture_test(test_close_inside_callback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
