/* SPDX-License-Identifier: Apache-2.0 */
/* The table of streams and their sockets: limits, ports, credit budget, backlog, ends. */
#include "stage1-kvm/vsock/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"

struct bench {
	struct loop loop;
	struct loop_timer tick;
	struct streams t;
};

static void on_tick(void *ctx)
{
	(void)ctx;
}

static void bench_init(struct bench *b, size_t max)
{
	*b = (struct bench){ 0 };
	assert_int_equal(loop_init(&b->loop), 0);
	assert_int_equal(streams_init(&b->t, &b->loop, max), 0);
	b->t.guest_up = true;
}

static void bench_deinit(struct bench *b)
{
	streams_deinit(&b->t);
	loop_deinit(&b->loop);
}

/* Handles all events that are there. */
static void settle(struct bench *b)
{
	for (int i = 0; i < 8; i++) {
		loop_timer_arm(&b->loop, &b->tick, 0, on_tick, NULL);
		assert_int_equal(loop_turn(&b->loop), 0);
	}
}

/* Adds a stream; the host program's end. */
static int add(struct bench *b)
{
	int fds[2];
	assert_int_equal(unix_pair(fds), 0);
	assert_int_equal(fd_set_nonblock(fds[0], true), 0);
	assert_int_equal(streams_add(&b->t, fds[0]), 0);
	return fds[1];
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* The stream whose turn it is sends what it owes and nothing else. */
static struct vsock_header serve(struct bench *b)
{
	struct vsock_header h;
	struct stream *s = streams_next_ready(&b->t);
	assert_non_null(s);
	assert_true(conn_next_packet(&s->conn, &h));
	stream_served(s);
	return h;
}

static struct stream *deliver(struct bench *b, const struct vsock_header *request, enum vsock_op op,
			      uint32_t flags)
{
	struct vsock_header h = { .op = (uint16_t)op, .flags = flags, .buf_alloc = 1000 };
	struct stream *s = streams_find(&b->t, request->src_port, request->dst_port);
	assert_non_null(s);
	conn_on_packet(&s->conn, &h);
	stream_settle(s);
	return s;
}

/* A stream that is open, and its OK line read. */
static struct stream *open_stream(struct bench *b, int *ret_host)
{
	char line[32] = { 0 }, expect[32];
	int host = add(b);
	say(host, "CONNECT 1024\n");
	settle(b);
	struct vsock_header request = serve(b);
	assert_int_equal(request.op, VSOCK_OP_REQUEST);
	assert_int_equal(request.dst_port, 1024);
	struct stream *s = deliver(b, &request, VSOCK_OP_RESPONSE, 0);
	snprintf(expect, sizeof(expect), "OK %u\n", request.src_port);
	assert_int_equal(read(host, line, sizeof(line)), strlen(expect));
	assert_string_equal(line, expect);
	s->readable = false; /* as the device finds out */
	stream_settle(s);
	*ret_host = host;
	return s;
}

static bool is_closed(int host)
{
	char c;
	return recv(host, &c, 1, MSG_DONTWAIT) == 0;
}

static void test_table_limit(void **state)
{
	struct bench b;
	int host[4], extra[2];
	(void)state;
	bench_init(&b, 3);
	assert_int_equal(streams_init(&(struct streams){ 0 }, &b.loop, 0), -EINVAL);
	assert_int_equal(streams_init(&(struct streams){ 0 }, &b.loop, STREAMS_MAX + 1), -EINVAL);
	for (int i = 0; i < 3; i++)
		host[i] = add(&b);
	assert_int_equal(unix_pair(extra), 0);
	assert_int_equal(streams_add(&b.t, extra[0]), -ENFILE);
	assert_int_equal(b.t.n, 3);
	close(host[1]);
	settle(&b);
	assert_int_equal(b.t.n, 2);
	assert_int_equal(streams_add(&b.t, extra[0]), 0);
	bench_deinit(&b);
	assert_true(is_closed(host[0]));
	close(host[0]);
	close(host[2]);
	close(extra[1]);
}

static void test_full_table_keeps_its_budget(void **state)
{
	struct rlimit limit = { 4096, 4096 };
	struct bench b;
	uint64_t sum = 0;
	(void)state;
	setrlimit(RLIMIT_NOFILE, &limit);
	bench_init(&b, STREAMS_MAX);
	static int host[STREAMS_MAX];
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		host[i] = add(&b);
		uint32_t alloc = b.t.slot[i].conn.buf_alloc;
		assert_in_range(alloc, STREAM_BUFFER_MIN, STREAM_BUFFER_MAX);
		sum += alloc;
	}
	assert_int_equal(b.t.slot[0].conn.buf_alloc, STREAM_BUFFER_MAX);
	assert_true(sum <= STREAM_BUDGET + (uint64_t)STREAMS_MAX * STREAM_BUFFER_MIN);
	for (size_t i = 0; i < STREAMS_MAX; i++)
		close(host[i]);
	for (size_t i = 0; i < STREAMS_MAX / LOOP_BATCH_MAX + 8; i++)
		settle(&b);
	assert_int_equal(b.t.n, 0);
	assert_int_equal(b.t.budget, STREAM_BUDGET);
	bench_deinit(&b);
}

static void test_ports_are_not_used_again(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b, 1);
	struct stream *s = open_stream(&b, &host);
	uint32_t port = s->conn.local_port;
	assert_int_equal(port % STREAMS_MAX, 0);
	assert_true(port >= STREAMS_MAX);
	streams_close_all(&b.t);
	close(host);
	assert_null(streams_find(&b.t, port, 1024));
	s = open_stream(&b, &host);
	assert_int_equal(s->conn.local_port, port + STREAMS_MAX);
	assert_null(streams_find(&b.t, port, 1024));
	assert_ptr_equal(streams_find(&b.t, port + STREAMS_MAX, 1024), s);
	assert_null(streams_find(&b.t, port + STREAMS_MAX, 1025));
	assert_null(streams_find(&b.t, port + STREAMS_MAX + 1, 1024));
	assert_null(streams_find(&b.t, UINT32_MAX, 1024));
	close(host);
	/* The number before VMADDR_PORT_ANY's generation is the last. */
	b.t.generation[0] = UINT32_MAX / STREAMS_MAX - 1;
	streams_close_all(&b.t);
	s = open_stream(&b, &host);
	assert_int_equal(s->conn.local_port, STREAMS_MAX);
	close(host);
	bench_deinit(&b);
}

static void test_line_in_pieces_leaves_the_rest(void **state)
{
	struct bench b;
	char rest[16] = { 0 };
	(void)state;
	bench_init(&b, 1);
	cleanup_fd int host = add(&b);
	say(host, "CONN");
	settle(&b);
	assert_null(streams_next_ready(&b.t));
	say(host, "ECT 7\nrest");
	settle(&b);
	assert_int_equal(serve(&b).dst_port, 7);
	assert_int_equal(read(b.t.slot[0].fd, rest, sizeof(rest)), 4);
	assert_string_equal(rest, "rest");
	bench_deinit(&b);
}

static void test_wrong_line_closes(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b, 1);
	cleanup_fd int host = add(&b);
	say(host, "GET / HTTP/1.1\r\n");
	settle(&b);
	assert_true(is_closed(host));
	assert_int_equal(b.t.n, 0);
	bench_deinit(&b);
}

static void test_waiting_limit(void **state)
{
	struct bench b;
	int host[STREAMS_WAITING_MAX + 1];
	(void)state;
	bench_init(&b, STREAMS_MAX);
	b.t.guest_up = false;
	for (size_t i = 0; i <= STREAMS_WAITING_MAX; i++) {
		host[i] = add(&b);
		say(host[i], "CONNECT 1\n");
		settle(&b);
		assert_int_equal(is_closed(host[i]), i == STREAMS_WAITING_MAX);
	}
	assert_int_equal(b.t.n, STREAMS_WAITING_MAX);
	close(host[0]); /* gave up waiting */
	settle(&b);
	assert_int_equal(b.t.n, STREAMS_WAITING_MAX - 1);
	for (size_t i = 1; i <= STREAMS_WAITING_MAX; i++)
		close(host[i]);
	bench_deinit(&b);
}

/* Forwards @len bytes of the letter as the device would. */
static void forward(struct stream *s, char letter, size_t len)
{
	static char mem[STREAM_BUFFER_MAX];
	struct vsock_header h = { .op = VSOCK_OP_RW, .len = (uint32_t)len, .buf_alloc = 1000 };
	memset(mem, letter, len);
	struct iovec iov[2] = { { mem, len / 3 }, { mem + len / 3, len - len / 3 } };
	assert_int_equal(conn_on_packet(&s->conn, &h), len);
	assert_int_equal(stream_forward(s, iov, 2, len), 0);
	stream_settle(s);
}

static size_t drain(int fd, char letter)
{
	char mem[4096];
	size_t got = 0;
	ssize_t n;
	while ((n = recv(fd, mem, sizeof(mem), MSG_DONTWAIT)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(mem[i], letter);
		got += (size_t)n;
	}
	return got;
}

static void test_backlog_of_a_slow_reader(void **state)
{
	struct bench b;
	int host, small = 4096;
	(void)state;
	bench_init(&b, 1);
	struct stream *s = open_stream(&b, &host);
	setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	for (size_t i = 0; i < STREAM_BUFFER_MAX / 65536; i++)
		forward(s, 'x', 65536);
	size_t backlog = buf_len(&s->backlog);
	assert_true(backlog > 0 && backlog == conn_buffered(&s->conn));
	assert_true(s->watch.events & EPOLLOUT);
	size_t got = 0;
	while (got < STREAM_BUFFER_MAX) {
		got += drain(host, 'x');
		settle(&b);
	}
	assert_int_equal(got, STREAM_BUFFER_MAX);
	assert_int_equal(conn_buffered(&s->conn), 0);
	assert_null(s->backlog.mem); /* given back */
	assert_false(s->watch.events & EPOLLOUT);
	close(host);
	bench_deinit(&b);
}

static void test_guest_closes_behind_its_last_bytes(void **state)
{
	struct bench b;
	int host, small = 4096;
	(void)state;
	bench_init(&b, 1);
	struct stream *s = open_stream(&b, &host);
	struct vsock_header key = { .src_port = s->conn.local_port, .dst_port = 1024 };
	setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	forward(s, 'y', 65536);
	say(host, "never read by the guest");
	deliver(&b, &key, VSOCK_OP_SHUTDOWN, VSOCK_SHUTDOWN_BOTH);
	assert_int_equal(serve(&b).op, VSOCK_OP_RST);
	size_t got = 0;
	while (b.t.n > 0) {
		got += drain(host, 'y');
		settle(&b);
	}
	got += drain(host, 'y');
	assert_int_equal(got, 65536);
	assert_true(is_closed(host)); /* in order, not ECONNRESET */
	close(host);
	bench_deinit(&b);
}

static void test_half_close_by_the_guest(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b, 1);
	struct stream *s = open_stream(&b, &host);
	struct vsock_header key = { .src_port = s->conn.local_port, .dst_port = 1024 };
	deliver(&b, &key, VSOCK_OP_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	assert_true(is_closed(host));
	say(host, "still");
	settle(&b);
	assert_true(s->readable);
	assert_ptr_equal(streams_next_ready(&b.t), s);
	deliver(&b, &key, VSOCK_OP_SHUTDOWN, VSOCK_SHUTDOWN_RCV);
	assert_int_equal(serve(&b).op, VSOCK_OP_RST);
	assert_int_equal(b.t.n, 0);
	close(host);
	bench_deinit(&b);
}

static void test_guest_receives_no_more(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b, 1);
	struct stream *s = open_stream(&b, &host);
	struct vsock_header key = { .src_port = s->conn.local_port, .dst_port = 1024 };
	deliver(&b, &key, VSOCK_OP_SHUTDOWN, VSOCK_SHUTDOWN_RCV);
	assert_int_equal(send(host, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_null(streams_next_ready(&b.t));
	close(host);
	settle(&b);
	assert_int_equal(serve(&b).op, VSOCK_OP_SHUTDOWN);
	assert_int_equal(serve(&b).op, VSOCK_OP_RST);
	assert_int_equal(b.t.n, 0);
	bench_deinit(&b);
}

static void test_turns_are_fair(void **state)
{
	struct bench b;
	struct stream *s[3];
	int host[3];
	(void)state;
	bench_init(&b, 3);
	for (int i = 0; i < 3; i++)
		s[i] = open_stream(&b, &host[i]);
	for (int i = 0; i < 3; i++) {
		say(host[i], "bytes");
		settle(&b);
	}
	for (int i = 0; i < 9; i++) {
		struct stream *next = streams_next_ready(&b.t);
		assert_ptr_equal(next, s[i % 3]);
		stream_settle(s[(i + 1) % 3]); /* an event does not cost a turn */
		stream_settle(next);
		stream_served(next);
	}
	for (int i = 0; i < 3; i++)
		close(host[i]);
	bench_deinit(&b);
}

static void test_lost_guest(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b, 2);
	open_stream(&b, &host);
	cleanup_fd int waiting = add(&b);
	say(waiting, "CONNECT 9\n");
	settle(&b);
	streams_guest_lost(&b.t);
	assert_int_equal(b.t.n, 1);
	assert_true(is_closed(host));
	assert_int_equal(serve(&b).dst_port, 9);
	close(host);
	bench_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_table_limit),
		fixture_test(test_full_table_keeps_its_budget),
		fixture_test(test_ports_are_not_used_again),
		fixture_test(test_line_in_pieces_leaves_the_rest),
		fixture_test(test_wrong_line_closes),
		fixture_test(test_waiting_limit),
		fixture_test(test_backlog_of_a_slow_reader),
		fixture_test(test_guest_closes_behind_its_last_bytes),
		fixture_test(test_half_close_by_the_guest),
		fixture_test(test_guest_receives_no_more),
		fixture_test(test_turns_are_fair),
		fixture_test(test_lost_guest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
