/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ttrpc/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"

/* A server whose handler keeps what it is asked. */
struct bench {
	struct loop loop;
	struct ttrpc_server *server;
	struct loop_timer timer;
	uint64_t tokens[TTRPC_CALLS_MAX + 1];
	size_t n;
	char method[32];
	size_t payload_len;
};

static void on_request(void *ctx, uint64_t token, const struct ttrpc_request *q)
{
	struct bench *b = ctx;
	assert_true(b->n <= TTRPC_CALLS_MAX);
	b->tokens[b->n++] = token;
	snprintf(b->method, sizeof(b->method), "%s", q->method);
	b->payload_len = q->len;
}

static struct bench *begin(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	assert_non_null(b);
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(loop_init(&b->loop), 0);
	int fd = unix_listen("s", 0600);
	assert_true(fd >= 0);
	assert_int_equal(ttrpc_server_new(&b->loop, fd, on_request, b, &b->server), 0);
	return b;
}

static void end(struct bench *b)
{
	ttrpc_server_free(b->server);
	loop_deinit(&b->loop);
	free(b);
}

static void on_time(void *ctx)
{
	(void)ctx;
}

/* Serves until nothing happens for a moment. */
static void serve(struct bench *b)
{
	for (int idle = 0; idle < 2;) {
		size_t before = b->n;
		loop_timer_arm(&b->loop, &b->timer, clock_monotonic_ns() + 20 * NS_PER_MS, on_time,
			       b);
		assert_int_equal(loop_turn(&b->loop), 0);
		idle = b->n == before && !b->timer.loop ? idle + 1 : 0;
		loop_timer_disarm(&b->timer);
	}
}

static int dial(void)
{
	int fd = unix_connect("s");
	assert_true(fd >= 0);
	return fd;
}

static void ask(int fd, uint32_t stream, const char *method, size_t payload)
{
	cleanup_buf struct buf out;
	cleanup_free uint8_t *bytes = calloc(1, payload + 1);
	buf_init(&out, TTRPC_FRAME_MAX);
	assert_non_null(bytes);
	assert_int_equal(ttrpc_request_append(&out, stream, "s", method, bytes, payload), 0);
	assert_int_equal(fd_write_all(fd, buf_data(&out), buf_len(&out)), 0);
}

/* The next response: its stream; its code in *ret. */
static uint32_t response(int fd, int *ret)
{
	uint8_t head[TTRPC_HEADER_LEN], body[8192];
	char why[TTRPC_ERROR_MAX + 1];
	size_t n;
	assert_int_equal(fd_read_full(fd, head, sizeof(head), &n), 0);
	assert_int_equal(n, sizeof(head));
	size_t len = (size_t)head[2] << 8 | head[3];
	assert_true(len <= sizeof(body));
	assert_int_equal(fd_read_full(fd, body, len, &n), 0);
	assert_int_equal(n, len);
	assert_int_equal(ttrpc_response_decode(body, len, ret, why), 0);
	assert_int_equal(head[8], TTRPC_RESPONSE);
	return head[7];
}

/* Two requests of one connection, answered in the other order. */
static void test_order(void **state)
{
	struct bench *b = begin(state);
	cleanup_fd int fd = dial();
	int code;
	ask(fd, 1, "Wait", 3);
	ask(fd, 3, "State", 0);
	serve(b);
	assert_int_equal(b->n, 2);
	assert_string_equal(b->method, "State");
	ttrpc_server_answer(b->server, b->tokens[1], NULL, 0);
	serve(b);
	assert_int_equal(response(fd, &code), 3);
	assert_int_equal(code, TTRPC_OK);
	ttrpc_server_refuse(b->server, b->tokens[0], TTRPC_NOT_FOUND, "gone");
	assert_false(ttrpc_server_is_flushed(b->server));
	serve(b);
	assert_true(ttrpc_server_is_flushed(b->server));
	assert_int_equal(response(fd, &code), 1);
	assert_int_equal(code, TTRPC_NOT_FOUND);
	/* Nobody waits for it any more. */
	ttrpc_server_answer(b->server, b->tokens[0], NULL, 0);
	end(b);
}

/* A client that goes takes its requests with it, and only those. */
static void test_gone(void **state)
{
	struct bench *b = begin(state);
	int code, first = dial();
	cleanup_fd int second = dial();
	ask(first, 1, "Wait", 0);
	serve(b);
	ask(second, 1, "Wait", 0);
	serve(b);
	assert_true(ttrpc_server_waits(b->server, b->tokens[0]));
	close(first);
	serve(b);
	assert_false(ttrpc_server_waits(b->server, b->tokens[0]));
	assert_true(ttrpc_server_waits(b->server, b->tokens[1]));
	ttrpc_server_answer(b->server, b->tokens[0], NULL, 0);
	ttrpc_server_answer(b->server, b->tokens[1], NULL, 0);
	serve(b);
	assert_int_equal(response(second, &code), 1);
	end(b);
}

static void test_refused(void **state)
{
	static const uint8_t odd_type[] = { 0, 0, 0, 1, 0, 0, 0, 1, 3, 0, 'x' };
	static const uint8_t even[] = { 0, 0, 0, 0, 0, 0, 0, 2, 1, 0 };
	static const uint8_t garbage[] = { 0, 0, 0, 1, 0, 0, 0, 5, 1, 0, 0xff };
	static const uint8_t too_long[] = { 0, 0x40, 0, 1, 0, 0, 0, 7, 1, 0 };
	struct bench *b = begin(state);
	cleanup_fd int fd = dial();
	int code;
	assert_int_equal(fd_write_all(fd, odd_type, sizeof(odd_type)), 0); /* is ignored */
	assert_int_equal(fd_write_all(fd, even, sizeof(even)), 0);
	assert_int_equal(fd_write_all(fd, garbage, sizeof(garbage)), 0);
	assert_int_equal(fd_write_all(fd, too_long, sizeof(too_long)), 0);
	serve(b);
	assert_int_equal(response(fd, &code), 2);
	assert_int_equal(code, TTRPC_INVALID_ARGUMENT);
	assert_int_equal(response(fd, &code), 5);
	assert_int_equal(code, TTRPC_INVALID_ARGUMENT);
	assert_int_equal(response(fd, &code), 7);
	assert_int_equal(code, TTRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(b->n, 0);
	end(b);
}

/* As many calls as may wait, and one more. */
static void test_many(void **state)
{
	struct bench *b = begin(state);
	cleanup_fd int fd = dial();
	int code;
	for (size_t i = 0; i <= TTRPC_CALLS_MAX; i++) {
		ask(fd, 1, "Wait", 0);
		if (i % 256 == 255)
			serve(b);
	}
	serve(b);
	assert_int_equal(b->n, TTRPC_CALLS_MAX);
	assert_int_equal(response(fd, &code), 1);
	assert_int_equal(code, TTRPC_RESOURCE_EXHAUSTED);
	end(b);
}

/* The longest request; and while its answers are not read, nothing more is read of a client. */
static void test_unread(void **state)
{
	struct bench *b = begin(state);
	cleanup_fd int fd = dial();
	cleanup_free uint8_t *payload = calloc(1, TTRPC_DATA_MAX);
	assert_non_null(payload);
	for (uint32_t i = 0; i < 4; i++)
		ask(fd, 2 * i + 1, "Big", 0);
	serve(b);
	assert_int_equal(b->n, 4);
	ttrpc_server_answer(b->server, b->tokens[0], payload, TTRPC_DATA_MAX - 5);
	ask(fd, 99, "Late", 0);
	serve(b);
	assert_int_equal(b->n, 4); /* "Late" is not read */
	/* What does not fit any more ends the connection, and with it the calls. */
	ttrpc_server_answer(b->server, b->tokens[1], payload, TTRPC_DATA_MAX - 5);
	ttrpc_server_answer(b->server, b->tokens[2], payload, TTRPC_DATA_MAX - 5);
	serve(b);
	ttrpc_server_answer(b->server, b->tokens[3], NULL, 0);
	assert_true(ttrpc_server_is_flushed(b->server));
	end(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_order), fixture_test(test_gone),   fixture_test(test_refused),
		fixture_test(test_many),  fixture_test(test_unread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
