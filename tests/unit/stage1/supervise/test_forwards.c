/* SPDX-License-Identifier: Apache-2.0 */
/* Real clients, on a port of this machine that is free; the agent is played by the test. */
#include "stage1/supervise/forwards.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"
#include "tests/support/settle.h"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct loop loop;
static struct forwards *forwards;
static int listener = -EBADF, agent_listener = -EBADF;
static uint16_t port;

static int begin(void **state)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(own);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fixture_setup(state), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(loop_init(&loop), 0);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&own, len), 0);
	assert_int_equal(listen(listener, 2 * FORWARDS_MAX), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &len), 0);
	port = ntohs(own.sin_port);
	agent_listener = unix_listen(FAKE_AGENT_SOCKET, 0600);
	assert_true(agent_listener >= 0);
	return forwards_new(&loop, listener, fake_backend.route, SECRET, &forwards);
}

static int end(void **state)
{
	forwards_free(forwards);
	listener = fd_close(listener);
	agent_listener = fd_close(agent_listener);
	loop_deinit(&loop);
	assert_int_equal(chdir("/"), 0);
	return fixture_teardown(state);
}

/* Until all timers that were armed up to now have ended; what they arm then is left alone. */
static void pass_time(void)
{
	for (struct loop_timer *t = loop.timers; t; t = t->next)
		t->deadline_ns = 0;
	assert_int_equal(loop_turn(&loop), 0);
	loop_settle(&loop);
}

static int client(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr = { htonl(INADDR_LOOPBACK) },
					.sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	loop_settle(&loop);
	return fd;
}

/* The connection that the agent gets, up to its request. -EAGAIN: none came. */
static int accept_request(void)
{
	char request[512];
	int fd = accept4(agent_listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	loop_settle(&loop);
	ssize_t n = read(fd, request, sizeof(request));
	assert_true(n > FRAME_HEADER_LEN);
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	struct agent_connect got;
	assert_int_equal(rpc_decode(request + FRAME_HEADER_LEN, (size_t)n - FRAME_HEADER_LEN, &m),
			 0);
	assert_string_equal(m.method, AGENT_CONNECT);
	assert_int_equal(agent_connect_decode(m.body, &got), 0);
	assert_int_equal(got.port, port);
	assert_string_equal(got.secret, SECRET);
	return fd;
}

static void reply(int agent, const char *json)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	assert_int_equal(frame_append(&b, json, strlen(json)), 0);
	assert_int_equal(write(agent, buf_data(&b), buf_len(&b)), (ssize_t)buf_len(&b));
	loop_settle(&loop);
}

static int accept_and_agree(void)
{
	int agent = accept_request();
	assert_true(agent >= 0);
	reply(agent, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
	return agent;
}

static void expect_read(int fd, const char *text)
{
	char got[64];
	loop_settle(&loop);
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), (ssize_t)strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void expect_end(int fd)
{
	char byte;
	loop_settle(&loop);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
}

static void expect_reset(int fd)
{
	char byte;
	loop_settle(&loop);
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0);
	assert_int_equal(errno, ECONNRESET);
}

static void test_both_ways(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	assert_int_equal(write(c, "early ", 6), 6);
	cleanup_fd int agent = accept_and_agree();
	expect_read(agent, "early ");
	assert_int_equal(write(c, "question", 8), 8);
	expect_read(agent, "question");
	assert_int_equal(write(agent, "answer", 6), 6);
	expect_read(c, "answer");
	agent = fd_close(agent);
	expect_reset(c);
}

/* Each side may end first, and still gets what the other has to say. */
static void test_client_ends_first(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_and_agree();
	assert_int_equal(write(c, "all", 3), 3);
	assert_int_equal(shutdown(c, SHUT_WR), 0);
	expect_read(agent, "all");
	expect_end(agent);
	assert_int_equal(write(agent, "late", 4), 4);
	expect_read(c, "late");
	agent = fd_close(agent);
	expect_end(c);
}

static void test_server_ends_first(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_and_agree();
	assert_int_equal(shutdown(agent, SHUT_WR), 0);
	expect_end(c);
	assert_int_equal(write(c, "to a sink", 9), 9);
	expect_read(agent, "to a sink");
	c = fd_close(c);
	expect_end(agent);
}

/* One that is gone without a word: the kernel asks for it, and tells. */
static void test_probes(void **state)
{
	(void)state;
	int n = 0;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_and_agree();
	for (int fd = 3; fd < 100; fd++) {
		int on = 0, after = 0;
		socklen_t len = sizeof(on);
		if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len) < 0 || !on)
			continue;
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, &len), 0);
		assert_int_equal(after, FORWARDS_PROBE_AFTER);
		n++;
	}
	assert_int_equal(n, 1);
	assert_true(c >= 0 && agent >= 0);
}

static void test_reset_by_client(void **state)
{
	(void)state;
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	int c = client();
	cleanup_fd int agent = accept_and_agree();
	assert_int_equal(setsockopt(c, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	fd_close(c);
	expect_end(agent);
	assert_true(send(agent, "x", 1, MSG_NOSIGNAL) < 0);
}

/* The agent closes without having ended what it sends: it was not all. */
static void test_agent_dies(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_and_agree();
	assert_int_equal(write(agent, "half", 4), 4);
	expect_read(c, "half");
	agent = fd_close(agent);
	expect_reset(c);
}

static void test_end_of_pod(void **state)
{
	(void)state;
	cleanup_fd int flowing = client();
	cleanup_fd int agent = accept_and_agree();
	cleanup_fd int asking = client();
	cleanup_fd int asked = accept_request();
	assert_int_equal(write(agent, "half", 4), 4);
	expect_read(flowing, "half");
	forwards_free(forwards);
	forwards = NULL;
	expect_reset(flowing);
	expect_reset(asking);
	expect_end(asked);
}

static void test_refused(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_request();
	reply(agent,
	      "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32004,\"message\":\"no\"}}");
	expect_reset(c);
	expect_end(agent);
}

/* The agent is the pod's, which may send anything, or nothing. */
static void test_hostile_agent(void **state)
{
	(void)state;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_request();
	reply(agent, "nonsense");
	expect_reset(c);

	cleanup_fd int second = client();
	agent = fd_close(agent);
	agent = accept_request();
	agent = fd_close(agent);
	expect_reset(second);

	cleanup_fd int third = client();
	agent = accept_request();
	pass_time();
	expect_reset(third);
}

static void test_no_agent(void **state)
{
	(void)state;
	agent_listener = fd_close(agent_listener);
	unlink(FAKE_AGENT_SOCKET);
	cleanup_fd int c = client();
	expect_reset(c);
}

/* One beyond waits, and has its turn when another one ends. */
static void test_limit(void **state)
{
	(void)state;
	int clients[FORWARDS_MAX + 1], agents[FORWARDS_MAX + 1];
	for (size_t i = 0; i < FORWARDS_MAX; i++) {
		clients[i] = client();
		agents[i] = accept_and_agree();
	}
	clients[FORWARDS_MAX] = client();
	assert_int_equal(accept_request(), -EAGAIN);
	agents[0] = fd_close(agents[0]);
	loop_settle(&loop);
	agents[FORWARDS_MAX] = accept_and_agree();
	assert_true(agents[FORWARDS_MAX] >= 0);
	assert_int_equal(write(clients[FORWARDS_MAX], "last", 4), 4);
	expect_read(agents[FORWARDS_MAX], "last");
	for (size_t i = 0; i <= FORWARDS_MAX; i++) {
		fd_close(clients[i]);
		fd_close(agents[i]);
	}
}

/* Neither a loop without end nor a deaf one. */
static void test_no_descriptors(void **state)
{
	(void)state;
	struct rlimit old, none;
	cleanup_fd int c = client();
	cleanup_fd int agent = accept_and_agree();
	cleanup_fd int second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr = { htonl(INADDR_LOOPBACK) },
					.sin_port = htons(port) };
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ 0, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(second, (const struct sockaddr *)&to, sizeof(to)), 0);
	loop_settle(&loop); /* which comes to an end */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(accept_request(), -EAGAIN);
	pass_time();
	cleanup_fd int late = accept_and_agree();
	assert_int_equal(write(second, "here", 4), 4);
	expect_read(late, "here");
	assert_int_equal(write(c, "still", 5), 5);
	expect_read(agent, "still");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_ways),
		TEST(test_client_ends_first),
		TEST(test_server_ends_first),
		TEST(test_probes),
		TEST(test_reset_by_client),
		TEST(test_agent_dies),
		TEST(test_end_of_pod),
		TEST(test_refused),
		TEST(test_hostile_agent),
		TEST(test_no_agent),
		TEST(test_limit),
		TEST(test_no_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
