/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static void shell(struct command *c, const char *script)
{
	command_init(c);
	assert_int_equal(strv_add(&c->argv, "/bin/sh"), 0);
	assert_int_equal(strv_add(&c->argv, "-c"), 0);
	assert_int_equal(strv_add(&c->argv, script), 0);
}

static void start(struct runner *r)
{
	assert_int_equal(runner_init(r), 0);
}

static void stop(struct runner *r)
{
	fd_close(r->signal_fd);
}

static void test_output(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	(void)state;
	start(&r);
	shell(&c, "echo one; echo two; echo three >&2");
	assert_int_equal(command_run(&r, &c, &e), 0);
	assert_int_equal(c.bytes, 8);
	assert_int_equal(c.n_marks, 2);
	assert_memory_equal(buf_data(&c.out), "one\ntwo\n", 8);
	assert_memory_equal(buf_data(&c.err), "three\n", 6);
	assert_true(c.start_ns <= c.first_ns && c.first_ns <= c.mark_ns[0] &&
		    c.mark_ns[0] <= c.mark_ns[1] && c.last_ns <= c.end_ns);
}

/* More is counted than is kept; more lines than are noted do no harm. */
static void test_much_output(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	(void)state;
	start(&r);
	shell(&c, "yes | head -c 1000000; yes | head -c 1000000 >&2");
	assert_int_equal(command_run(&r, &c, &e), 0);
	assert_int_equal(c.bytes, 1000000);
	assert_int_equal(buf_len(&c.out), COMMAND_OUTPUT_MAX);
	assert_int_equal(buf_len(&c.err), COMMAND_OUTPUT_MAX);
	assert_int_equal(c.n_marks, COMMAND_MARKS_MAX);
}

/* Input comes after the first output, not before. */
static void test_feed(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	(void)state;
	start(&r);
	shell(&c, "echo; wc -c");
	c.feed = 300000;
	assert_int_equal(command_run(&r, &c, &e), 0);
	assert_memory_equal(buf_data(&c.out), "\n300000\n", 8);
}

static void check_failure(const char *script, const char *text)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	start(&r);
	shell(&c, script);
	assert_int_equal(command_run(&r, &c, &e), -EIO);
	assert_string_equal(e.text, text);
}

static void test_failures(void **state)
{
	(void)state;
	check_failure("exit 3", "exit status 3");
	check_failure("echo no >&2; echo 'not at all' >&2; echo >&2; exit 1",
		      "exit status 1: not at all");
	check_failure("kill -9 $$", "ended by signal 9");
}

static void test_no_program(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	(void)state;
	start(&r);
	command_init(&c);
	assert_int_equal(strv_add(&c.argv, "/not/there"), 0);
	assert_int_equal(command_run(&r, &c, &e), -ENOENT);
	assert_string_equal(e.text, "cannot run \"/not/there\": No such file or directory");
}

/* What hangs is killed; what is in time beside it is not to blame. */
static void test_time_limit(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	struct command c[2];
	(void)state;
	start(&r);
	r.limit_s = 1;
	shell(&c[0], "exit 0");
	shell(&c[1], "exec tail -f /dev/null");
	assert_int_equal(command_run_all(&r, c, 2, &e), 0);
	assert_int_equal(command_check(&c[0], &e), 0);
	assert_int_equal(command_check(&c[1], &e), -EIO);
	assert_string_equal(e.text, "timed out");
	command_deinit(&c[0]);
	command_deinit(&c[1]);
}

/* A signal ends what runs, and nothing is started any more but to clean up. */
static void test_interrupt(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	struct command c[2];
	(void)state;
	start(&r);
	shell(&c[0], "kill -INT $PPID; exec tail -f /dev/null");
	assert_int_equal(command_run(&r, &c[0], &e), -EINTR);
	assert_true(r.interrupted);
	shell(&c[1], "exit 0");
	assert_int_equal(command_run(&r, &c[1], &e), -EINTR);
	r.cleaning = true;
	assert_int_equal(command_run(&r, &c[1], &e), 0);
	command_deinit(&c[0]);
	command_deinit(&c[1]);
}

/* A process in the background that keeps the pipes does not hold the command up. */
static void test_background(void **state)
{
	CLEANUP(stop) struct runner r = { .signal_fd = -EBADF };
	struct err e = ERR_INIT;
	cleanup_command struct command c;
	(void)state;
	start(&r);
	/* tail ends by itself when nobody reads its output any more: so that is not the pipe. */
	shell(&c, "tail -f /dev/null 8>&1 >/dev/null & echo $!");
	assert_int_equal(command_run(&r, &c, &e), 0);
	cleanup_free char *pid = buf_take_string(&c.out);
	assert_non_null(pid);
	assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_output),     fixture_test(test_much_output),
		fixture_test(test_feed),       fixture_test(test_failures),
		fixture_test(test_no_program), fixture_test(test_time_limit),
		fixture_test(test_interrupt),  fixture_test(test_background),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
