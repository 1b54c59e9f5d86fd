/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"

/* A process for which requests Wait come, over a real connection. */
struct bench {
	struct loop loop;
	struct loop_timer timer;
	struct ttrpc_server *server;
	struct process process;
	size_t n;
	int fd;
};

static void on_request(void *ctx, uint64_t token, const struct ttrpc_request *q)
{
	struct bench *b = ctx;
	(void)q;
	b->n++;
	process_wait(&b->process, b->server, token);
}

static void begin(void **state, struct bench *b)
{
	memset(b, 0, sizeof(*b));
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(loop_init(&b->loop), 0);
	int fd = unix_listen("s", 0600);
	assert_true(fd >= 0);
	assert_int_equal(ttrpc_server_new(&b->loop, fd, on_request, b, &b->server), 0);
	assert_int_equal(process_init(&b->process, "/in", "", "/err", false), 0);
	b->fd = unix_connect("s");
	assert_true(b->fd >= 0);
}

static void end(struct bench *b)
{
	process_deinit(&b->process);
	ttrpc_server_free(b->server);
	loop_deinit(&b->loop);
	close(b->fd);
}

static void on_time(void *ctx)
{
	(void)ctx;
}

/* Sends @n requests, and has them taken. */
static void ask(struct bench *b, size_t n)
{
	size_t want = b->n + n;
	for (size_t i = 0; i < n; i++) {
		cleanup_buf struct buf out;
		buf_init(&out, TTRPC_FRAME_MAX);
		assert_int_equal(ttrpc_request_append(&out, 1, "s", "Wait", NULL, 0), 0);
		assert_int_equal(fd_write_all(b->fd, buf_data(&out), buf_len(&out)), 0);
	}
	while (b->n < want || !ttrpc_server_is_flushed(b->server)) {
		loop_timer_arm(&b->loop, &b->timer, clock_monotonic_ns() + 50 * NS_PER_MS, on_time,
			       b);
		assert_int_equal(loop_turn(&b->loop), 0);
		loop_timer_disarm(&b->timer);
	}
}

/* The code of the next answer. */
static int answer(struct bench *b)
{
	uint8_t head[TTRPC_HEADER_LEN], body[256];
	char why[TTRPC_ERROR_MAX + 1];
	size_t n;
	int code;
	assert_int_equal(fd_read_full(b->fd, head, sizeof(head), &n), 0);
	assert_int_equal(fd_read_full(b->fd, body, head[3], &n), 0);
	assert_int_equal(ttrpc_response_decode(body, n, &code, why), 0);
	return code;
}

/* Who waits is told when it ends; who comes later at once. */
static void test_wait(void **state)
{
	struct bench b;
	begin(state, &b);
	assert_int_equal(b.process.status, PROCESS_CREATED);
	assert_string_equal(b.process.paths[0], "/in");
	assert_string_equal(b.process.paths[1], "");
	ask(&b, 2);
	b.process.status = PROCESS_RUNNING;
	process_end(&b.process, b.server, 7, 5 * NS_PER_SEC);
	assert_int_equal(b.process.status, PROCESS_STOPPED);
	ask(&b, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(answer(&b), TTRPC_OK);
	end(&b);
}

/* As many as may wait, and one more. */
static void test_many(void **state)
{
	struct bench b;
	begin(state, &b);
	for (size_t i = 0; i < PROCESS_WAITERS_MAX; i += 64) /* a socket does not hold more */
		ask(&b, 64);
	assert_int_equal(b.process.n_waiters, PROCESS_WAITERS_MAX);
	ask(&b, 1);
	assert_int_equal(answer(&b), TTRPC_RESOURCE_EXHAUSTED);
	/* Those whose client has gone make room. */
	close(b.fd);
	b.fd = unix_connect("s");
	assert_true(b.fd >= 0);
	ask(&b, 1);
	assert_int_equal(b.process.n_waiters, 1);
	process_end(&b.process, b.server, 0, 0);
	ask(&b, 1);
	assert_int_equal(answer(&b), TTRPC_OK);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_wait),
		fixture_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
