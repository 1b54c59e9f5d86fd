/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

struct bench {
	struct loop loop;
	struct loop_timer timer;
	struct input input;
	int out;
};

static void on_time(void *ctx)
{
	(void)ctx;
}

/* A few turns, of which none waits for long. */
static void turn(struct bench *b)
{
	for (int i = 0; i < 3; i++) {
		loop_timer_arm(&b->loop, &b->timer, clock_monotonic_ns() + 10 * NS_PER_MS, on_time,
			       b);
		assert_int_equal(loop_turn(&b->loop), 0);
		loop_timer_disarm(&b->timer);
	}
}

static void begin(void **state, struct bench *b)
{
	int dir = fixture_dir(state);
	memset(b, 0, sizeof(*b));
	assert_int_equal(mkfifoat(dir, "in", 0600), 0);
	int fifo = openat(dir, "in", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fifo >= 0);
	assert_int_equal(loop_init(&b->loop), 0);
	assert_int_equal(input_begin(&b->input, &b->loop, fifo, &b->out), 0);
}

static void end(struct bench *b)
{
	input_deinit(&b->input);
	loop_deinit(&b->loop);
	close(b->out);
}

static int open_writer(void **state)
{
	int fd = openat(fixture_dir(state), "in", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* What can be read now: a text, "-" for nothing, "" for the end. */
static void check_output(const struct bench *b, const char *want)
{
	char text[64] = "-";
	struct pollfd p = { .fd = b->out, .events = POLLIN };
	if (poll(&p, 1, 0) > 0) {
		ssize_t n = read(b->out, text, sizeof(text) - 1);
		assert_true(n >= 0);
		text[n] = '\0';
	}
	assert_string_equal(text, want);
}

/* A client that comes late, writes, and goes. */
static void test_client(void **state)
{
	struct bench b;
	begin(state, &b);
	turn(&b);
	check_output(&b, "-"); /* nobody was there yet: that is no end */
	int writer = open_writer(state);
	turn(&b);
	check_output(&b, "-");
	assert_int_equal(write(writer, "one", 3), 3);
	turn(&b);
	check_output(&b, "one");
	assert_int_equal(write(writer, "two", 3), 3);
	close(writer);
	turn(&b);
	check_output(&b, "two");
	turn(&b);
	check_output(&b, "");
	end(&b);
}

/* Held it does not end with its clients, of which the next one may come later. */
static void test_hold(void **state)
{
	struct bench b;
	begin(state, &b);
	int writer = open_writer(state);
	assert_int_equal(write(writer, "one", 3), 3);
	input_hold(&b.input);
	input_hold(&b.input);
	for (int i = 0; i < 2; i++) {
		close(writer);
		turn(&b);
		check_output(&b, "one");
		turn(&b);
		check_output(&b, "-");
		writer = open_writer(state);
		assert_int_equal(write(writer, "one", 3), 3);
	}
	input_end(&b.input);
	check_output(&b, "one");
	check_output(&b, "");
	close(writer);
	end(&b);
}

/* It ends with those who have gone before it is held; what has ended is held by nobody. */
static void test_gone(void **state)
{
	struct bench b;
	begin(state, &b);
	int writer = open_writer(state);
	assert_int_equal(write(writer, "two", 3), 3);
	close(writer);
	input_hold(&b.input);
	turn(&b);
	check_output(&b, "two");
	turn(&b);
	check_output(&b, "");
	input_hold(&b.input);
	assert_int_equal(b.input.held, -EBADF);
	end(&b);
}

/* It is to end while clients have it open: what they have written comes before that. */
static void test_end(void **state)
{
	struct bench b;
	begin(state, &b);
	int writer = open_writer(state);
	assert_int_equal(write(writer, "last", 4), 4);
	input_end(&b.input);
	check_output(&b, "last");
	check_output(&b, "");
	input_end(&b.input); /* again: harmless */
	close(writer);
	end(&b);
}

/* More than the pipe holds waits in the fifo, and the end comes behind it. */
static void test_full(void **state)
{
	static char block[4096];
	struct bench b;
	size_t written = 0, read_back = 0;
	begin(state, &b);
	int writer = open_writer(state);
	for (int i = 0; i < 100; i++) {
		ssize_t n = write(writer, block, sizeof(block));
		written += n > 0 ? (size_t)n : 0;
		turn(&b);
		if (n < 0)
			break;
	}
	assert_true(written >= (size_t)128 * 1024); /* one pipe, and the other */
	input_end(&b.input);
	close(writer);
	for (;;) {
		ssize_t n = read(b.out, block, sizeof(block));
		assert_true(n >= 0);
		if (n == 0)
			break;
		read_back += (size_t)n;
		if (read_back % (16 * sizeof(block)) == 0)
			turn(&b);
	}
	assert_int_equal(read_back, written);
	end(&b);
}

/*
 * It is to end with more in the fifo than one piece, or than the pipe holds: while somebody reads,
 * whatever the moment, all of it arrives.
 */
static void test_end_of_much(void **state)
{
	static char block[65536];
	struct bench b;
	begin(state, &b);
	int writer = open_writer(state);
	assert_int_equal(write(writer, block, sizeof(block)), sizeof(block));
	turn(&b); /* the pipe is full */
	assert_int_equal(write(writer, block, sizeof(block)), sizeof(block));
	input_end(&b.input);
	assert_int_equal(read(b.out, block, sizeof(block)), sizeof(block));
	turn(&b);
	assert_int_equal(read(b.out, block, sizeof(block)), sizeof(block));
	check_output(&b, "");
	close(writer);
	end(&b);
}

/* Who reads has gone: nothing is copied any more, and nobody gets a signal. */
static void test_reader_gone(void **state)
{
	struct bench b;
	begin(state, &b);
	int writer = open_writer(state);
	close(b.out);
	assert_int_equal(write(writer, "x", 1), 1);
	signal(SIGPIPE, SIG_IGN);
	turn(&b);
	assert_int_equal(b.input.fifo, -EBADF);
	b.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(writer);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_client),      fixture_test(test_hold),
		fixture_test(test_gone),        fixture_test(test_end),
		fixture_test(test_full),        fixture_test(test_end_of_much),
		fixture_test(test_reader_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
