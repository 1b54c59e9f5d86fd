/* SPDX-License-Identifier: Apache-2.0 */
/* Between real connections: TCP on this machine's loopback, and a socket pair. */
#include "lib/net/duplex.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/support/settle.h"

#define SMALL 4096 /* asked for as the buffer of a socket; the kernel takes more */

static struct loop loop;
static struct duplex duplex;
static int tcp = -EBADF, pair = -EBADF; /* the far ends */
static int n_ends, end_error;

static void on_end(void *ctx, int error)
{
	assert_ptr_equal(ctx, &duplex);
	assert_null(duplex.loop);
	n_ends++;
	end_error = error;
}

static void make_small(int fd)
{
	const int size = SMALL;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static int listen_somewhere(struct sockaddr_in *own, int backlog)
{
	socklen_t len = sizeof(*own);
	*own = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	make_small(fd);
	assert_int_equal(bind(fd, (struct sockaddr *)own, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)own, &len), 0);
	return fd;
}

static int connect_to(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	make_small(fd);
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

static void make_pair(int ret[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret),
			 0);
	make_small(ret[0]);
	make_small(ret[1]);
}

static int begin(void **state)
{
	struct sockaddr_in own;
	int ends[2];
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	n_ends = end_error = 0;
	assert_int_equal(loop_init(&loop), 0);
	cleanup_fd int listener = listen_somewhere(&own, 1);
	int near = connect_to(&own);
	tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(tcp >= 0);
	make_pair(ends);
	pair = ends[1];
	return duplex_start(&duplex, &loop, near, ends[0], on_end, &duplex);
}

static int end(void **state)
{
	(void)state;
	duplex_stop(&duplex);
	tcp = fd_close(tcp);
	pair = fd_close(pair);
	loop_deinit(&loop);
	return 0;
}

static void expect_read(int fd, const char *text)
{
	char got[64];
	loop_settle(&loop);
	assert_int_equal(read(fd, got, sizeof(got)), (ssize_t)strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void expect_eof(int fd)
{
	char byte;
	loop_settle(&loop);
	assert_int_equal(read(fd, &byte, 1), 0);
}

static void expect_reset(int fd)
{
	char byte;
	loop_settle(&loop);
	ssize_t n;
	while ((n = read(fd, &byte, 1)) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
}

static void reset(int fd)
{
	static const struct linger now = { .l_onoff = 1, .l_linger = 0 };
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	fd_close(fd);
}

static void test_both_ways(void **state)
{
	(void)state;
	assert_int_equal(write(tcp, "there", 5), 5);
	expect_read(pair, "there");
	assert_int_equal(write(pair, "and back", 8), 8);
	expect_read(tcp, "and back");
	assert_int_equal(n_ends, 0);
}

/* Either side may end first, and still gets what the other has to say. */
static void test_ends(void **state)
{
	(void)state;
	assert_int_equal(write(tcp, "all", 3), 3);
	assert_int_equal(shutdown(tcp, SHUT_WR), 0);
	expect_read(pair, "all");
	expect_eof(pair);
	assert_int_equal(write(pair, "late", 4), 4);
	expect_read(tcp, "late");
	assert_int_equal(n_ends, 0);
	pair = fd_close(pair);
	expect_eof(tcp);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, 0);
}

static void test_ends_of_the_other(void **state)
{
	(void)state;
	assert_int_equal(write(pair, "hello", 5), 5);
	assert_int_equal(shutdown(pair, SHUT_WR), 0);
	expect_read(tcp, "hello");
	expect_eof(tcp);
	assert_int_equal(write(tcp, "to a sink", 9), 9);
	expect_read(pair, "to a sink");
	assert_int_equal(n_ends, 0);
	tcp = fd_close(tcp);
	expect_eof(pair);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, 0);
}

static void test_reset(void **state)
{
	(void)state;
	assert_int_equal(write(tcp, "half", 4), 4);
	expect_read(pair, "half");
	reset(tcp);
	tcp = -EBADF;
	expect_eof(pair);
	assert_true(send(pair, "x", 1, MSG_NOSIGNAL) < 0);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNRESET);
}

/* As a server does that has answered and does not care for the rest of the question. */
static void test_reset_behind_bytes(void **state)
{
	(void)state;
	assert_int_equal(write(tcp, "the answer", 10), 10);
	reset(tcp);
	tcp = -EBADF;
	expect_read(pair, "the answer");
	expect_eof(pair);
	assert_true(send(pair, "x", 1, MSG_NOSIGNAL) < 0);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNRESET);
}

/* Who waits for an answer alone hears of it, too. */
static void test_reset_after_its_end(void **state)
{
	(void)state;
	assert_int_equal(shutdown(tcp, SHUT_WR), 0);
	expect_eof(pair);
	reset(tcp);
	tcp = -EBADF;
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNRESET);
}

/* As a process that is killed while it sends: what has come is not all. */
static void test_closed_in_the_middle(void **state)
{
	(void)state;
	assert_int_equal(write(pair, "half", 4), 4);
	pair = fd_close(pair);
	expect_reset(tcp);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNRESET);
}

/* Writes until nothing more fits anywhere. How many bytes. */
static size_t fill(int fd)
{
	static const char zeroes[1000];
	size_t sum = 0;
	for (ssize_t n; (n = write(fd, zeroes, sizeof(zeroes))) > 0; loop_settle(&loop))
		sum += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return sum;
}

/* Nobody waits for a target that takes nothing on behalf of one who is gone. */
static void test_gone_while_busy(void **state)
{
	(void)state;
	fill(pair); /* and the far end of TCP does not read */
	assert_int_equal(n_ends, 0);
	pair = fd_close(pair);
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
	expect_reset(tcp);
}

static void test_reset_while_busy(void **state)
{
	(void)state;
	fill(tcp);
	reset(tcp);
	tcp = -EBADF;
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNRESET);
}

static void test_gone_while_both_are_busy(void **state)
{
	(void)state;
	fill(pair);
	fill(tcp);
	assert_int_equal(n_ends, 0);
	pair = fd_close(pair);
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
}

/* One that has asked all it wants, and is gone before the answer. */
static void test_gone_after_its_end(void **state)
{
	(void)state;
	assert_int_equal(shutdown(pair, SHUT_WR), 0);
	expect_eof(tcp);
	assert_int_equal(n_ends, 0);
	pair = fd_close(pair);
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
	assert_true(send(tcp, "answer", 6, MSG_NOSIGNAL) < 0);
}

/* What does not fit waits, in order, and its end behind it. */
static void slow_reader(int from, int to)
{
	static char sent[3 * 1024 * 1024], got[sizeof(sent)];
	size_t out = 0, in = 0;
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7 + i / 251);
	for (ssize_t n; (n = write(from, sent + out, sizeof(sent) - out)) > 0; loop_settle(&loop))
		out += (size_t)n;
	assert_in_range(out, 1, sizeof(sent) - 1); /* it is held up */
	while (in < sizeof(sent)) {
		ssize_t n = write(from, sent + out, sizeof(sent) - out);
		out += n > 0 ? (size_t)n : 0;
		if (out == sizeof(sent))
			shutdown(from, SHUT_WR);
		loop_settle(&loop);
		n = read(to, got + in, MIN((size_t)50000, sizeof(got) - in));
		in += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(got, sent, sizeof(sent));
	expect_eof(to);
}

static void test_slow_reader(void **state)
{
	(void)state;
	slow_reader(tcp, pair);
	slow_reader(pair, tcp);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, 0);
}

static void test_stop(void **state)
{
	(void)state;
	duplex_stop(&duplex);
	expect_reset(tcp);
	expect_eof(pair);
	assert_int_equal(n_ends, 0);
	duplex_stop(&duplex);
}

/* A server that listens and does not accept is one that will: bytes and their end wait for it. */
static void test_connected_later(void **state)
{
	struct sockaddr_in own;
	int ends[2], near;
	(void)state;
	duplex_stop(&duplex);
	pair = fd_close(pair);
	cleanup_fd int listener = listen_somewhere(&own, 0);
	cleanup_fd int first = connect_to(&own);
	near = connect_to(&own); /* for which there is no room */
	assert_true(first >= 0);
	make_pair(ends);
	pair = ends[1];
	assert_int_equal(duplex_start(&duplex, &loop, near, ends[0], on_end, &duplex), 0);
	assert_int_equal(write(pair, "early", 5), 5);
	assert_int_equal(shutdown(pair, SHUT_WR), 0);
	loop_settle(&loop);
	assert_int_equal(n_ends, 0);
	fd_close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	tcp = fd_close(tcp);
	while ((tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
		assert_int_equal(loop_turn(&loop), 0); /* when the kernel tries again */
	expect_read(tcp, "early");
	expect_eof(tcp);
}

/* Which is not the same as an answer that is empty. */
static void test_never_connected(void **state)
{
	struct sockaddr_in own;
	int ends[2];
	(void)state;
	duplex_stop(&duplex);
	pair = fd_close(pair);
	fd_close(listen_somewhere(&own, 0));
	make_pair(ends);
	pair = ends[1];
	assert_int_equal(duplex_start(&duplex, &loop, ends[0], connect_to(&own), on_end, &duplex),
			 0);
	loop_settle(&loop);
	assert_int_equal(n_ends, 1);
	assert_int_equal(end_error, -ECONNREFUSED);
}

static int start_and_stop(void *ctx)
{
	int ends[2];
	(void)ctx;
	make_pair(ends);
	int r = duplex_start(&duplex, &loop, ends[0], ends[1], on_end, &duplex);
	assert_true(r == 0 || (fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) < 0));
	duplex_stop(&duplex);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	duplex_stop(&duplex);
	for_each_failing_alloc(start_and_stop, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_ways),
		TEST(test_ends),
		TEST(test_ends_of_the_other),
		TEST(test_reset),
		TEST(test_reset_behind_bytes),
		TEST(test_reset_after_its_end),
		TEST(test_closed_in_the_middle),
		TEST(test_gone_while_busy),
		TEST(test_reset_while_busy),
		TEST(test_gone_while_both_are_busy),
		TEST(test_gone_after_its_end),
		TEST(test_slow_reader),
		TEST(test_stop),
		TEST(test_connected_later),
		TEST(test_never_connected),
		TEST(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
