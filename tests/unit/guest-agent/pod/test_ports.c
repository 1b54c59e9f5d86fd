/* SPDX-License-Identifier: Apache-2.0 */
/* Real connections: to servers of the test, on whatever port of this machine is free. */
#include "guest-agent/pod/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/support/settle.h"

static struct loop loop;
static struct ports *ports;
static int server = -EBADF; /* listens */
static uint16_t port;
static int host = -EBADF, app = -EBADF; /* the ends of a connection */

/* Listens on the loopback of the family. False: this machine has none. */
static bool listen_on(int family, int backlog)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool is_v4 = family == AF_INET;
	struct sockaddr *own = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);
	server = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server < 0 || bind(server, own, len) < 0)
		return false;
	assert_int_equal(listen(server, backlog), 0);
	assert_int_equal(getsockname(server, own, &len), 0);
	port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	return true;
}

static int begin(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(loop_init(&loop), 0);
	ports = ports_new(&loop);
	return ports ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	ports_free(ports);
	server = fd_close(server);
	host = fd_close(host);
	app = fd_close(app);
	loop_deinit(&loop);
	return 0;
}

/* A connection of the host, whose end comes back, to where connect() has led. */
static int attach(int fd)
{
	struct fault f = { 0 };
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	assert_int_equal(ports_attach(ports, fd, pair[0], &f), 0);
	return pair[1];
}

static void open_connection(void)
{
	struct fault f = { 0 };
	int fd = -EBADF;
	assert_int_equal(ports_connect(ports, port, &fd, &f), 0);
	host = attach(fd);
	loop_settle(&loop);
	app = fd_close(app);
	app = accept4(server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(app >= 0);
}

static void expect_read(int fd, const char *text)
{
	char got[64];
	loop_settle(&loop);
	assert_int_equal(read(fd, got, sizeof(got)), (ssize_t)strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void expect_end(int fd)
{
	char byte;
	loop_settle(&loop);
	assert_int_equal(read(fd, &byte, 1), 0);
}

static void test_both_ways(void **state)
{
	(void)state;
	assert_true(listen_on(AF_INET, 1));
	open_connection();
	assert_int_equal(write(host, "question", 8), 8);
	expect_read(app, "question");
	assert_int_equal(write(app, "answer", 6), 6);
	expect_read(host, "answer");
}

/* The rest is as lib/net/duplex.h has it. */
static void test_server_resets(void **state)
{
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	(void)state;
	assert_true(listen_on(AF_INET, 1));
	open_connection();
	assert_int_equal(setsockopt(app, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	app = fd_close(app);
	expect_end(host);
	assert_true(send(host, "x", 1, MSG_NOSIGNAL) < 0); /* closed, not only ended */
}

/* What holds a connection that is gone could be nothing but the server, which does not read. */
static void test_stalled_server(void **state)
{
	(void)state;
	static const char zeroes[10000];
	struct fault f = { 0 };
	int fd = -EBADF;
	assert_true(listen_on(AF_INET, 2 * AGENT_CONNECTIONS_MAX));
	for (int i = 0; i < AGENT_CONNECTIONS_MAX; i++) {
		assert_int_equal(ports_connect(ports, port, &fd, &f), 0);
		cleanup_fd int client = attach(fd);
		while (write(client, zeroes, sizeof(zeroes)) > 0)
			loop_settle(&loop);
	}
	loop_settle(&loop);
	open_connection();
	assert_int_equal(write(host, "room", 4), 4);
}

static void test_nobody_listens(void **state)
{
	(void)state;
	struct fault f = { 0 };
	char want[64];
	int fd = -EBADF;
	assert_true(listen_on(AF_INET, 1));
	server = fd_close(server);
	assert_int_equal(ports_connect(ports, port, &fd, &f), FAULT_SET);
	assert_int_equal(fd, -EBADF);
	assert_int_equal(f.code, AGENT_E_STATE);
	snprintf(want, sizeof(want), "port %d of the pod: Connection refused", port);
	assert_string_equal(f.text, want);
}

static void test_only_ipv6(void **state)
{
	(void)state;
	if (!listen_on(AF_INET6, 1))
		skip();
	open_connection();
	assert_int_equal(write(host, "six", 3), 3);
	expect_read(app, "six");
}

/* Who listens and does not accept: nobody waits, and it goes on when that is accepted. */
static void test_busy_server(void **state)
{
	(void)state;
	struct fault f = { 0 };
	int fds[8], hosts[8], n_accepted = 0;
	assert_true(listen_on(AF_INET, 0));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_int_equal(ports_connect(ports, port, &fds[i], &f), 0);
		hosts[i] = attach(fds[i]);
		assert_int_equal(write(hosts[i], "x", 1), 1);
	}
	loop_settle(&loop);
	for (int fd; (fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0; n_accepted++)
		fd_close(fd);
	assert_in_range(n_accepted, 1, (int)ARRAY_SIZE(fds) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(hosts[i]);
}

/* The last one is as good as the first, one more is refused, one that has ended makes room. */
static void test_limit(void **state)
{
	(void)state;
	struct fault f = { 0 };
	static int hosts[AGENT_CONNECTIONS_MAX];
	int fd = -EBADF;
	assert_true(listen_on(AF_INET, AGENT_CONNECTIONS_MAX));
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		assert_int_equal(ports_connect(ports, port, &fd, &f), 0);
		hosts[i] = attach(fd);
	}
	assert_int_equal(ports_connect(ports, port, &fd, &f), FAULT_SET);
	assert_int_equal(f.code, AGENT_E_LIMIT);
	loop_settle(&loop);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		app = fd_close(app);
		app = accept4(server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		assert_true(app >= 0);
	}
	loop_settle(&loop);
	assert_int_equal(write(app, "last", 4), 4);
	expect_read(hosts[AGENT_CONNECTIONS_MAX - 1], "last");
	fd_close(hosts[0]);
	loop_settle(&loop);
	open_connection();
	for (size_t i = 1; i < ARRAY_SIZE(hosts); i++)
		fd_close(hosts[i]);
}

/* Both descriptors are taken over, also when there is no room. */
static void test_attach_without_room(void **state)
{
	(void)state;
	struct fault f = { 0 };
	int pair[2], fd = -EBADF;
	static int hosts[AGENT_CONNECTIONS_MAX];
	assert_true(listen_on(AF_INET, AGENT_CONNECTIONS_MAX + 1));
	assert_int_equal(ports_connect(ports, port, &fd, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		int one;
		assert_int_equal(ports_connect(ports, port, &one, &f), 0);
		hosts[i] = attach(one);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	assert_int_equal(ports_attach(ports, fd, pair[0], &f), FAULT_SET);
	assert_true(fcntl(fd, F_GETFD) < 0);
	expect_end(pair[1]);
	fd_close(pair[1]);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		fd_close(hosts[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_ways),      TEST(test_server_resets),
		TEST(test_stalled_server), TEST(test_nobody_listens),
		TEST(test_only_ipv6),      TEST(test_busy_server),
		TEST(test_limit),          TEST(test_attach_without_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
