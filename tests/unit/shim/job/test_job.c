/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/job/job.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fixture.h"

/* How a job ended. */
struct seen {
	struct loop *loop;
	bool ended;
	struct job_end end;
	char text[JOB_TEXT_MAX + 1];
	struct err e;
};

static void on_done(void *ctx, const struct job_end *end)
{
	struct seen *s = ctx;
	s->ended = true;
	s->end = *end;
	snprintf(s->text, sizeof(s->text), "%s", end->text);
	s->e = *end->e;
	loop_quit(s->loop);
}

static int yield(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	(void)e;
	memset(text, *(const char *)ctx, JOB_TEXT_MAX);
	text[JOB_TEXT_MAX] = '\0';
	return 0;
}

static int refuse(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	(void)ctx;
	(void)text;
	return err_set(e, -ENOENT, "there is none");
}

static int become(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	(void)text;
	execl("/bin/sh", "sh", "-c", (const char *)ctx, NULL);
	return err_sys(e, -errno, "sh");
}

static int wait_for_ever(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	(void)ctx;
	(void)text;
	(void)e;
	for (;;)
		pause();
	return 0;
}

static void run_with(unsigned int flags, job_fn fn, const void *ctx, struct seen *s)
{
	struct loop loop;
	*s = (struct seen){ .loop = &loop };
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(job_start(&loop, fn, (void *)(uintptr_t)ctx, flags, on_done, s, NULL), 0);
	assert_int_equal(loop_run(&loop), 0);
	assert_true(s->ended);
	loop_deinit(&loop);
}

static void run(job_fn fn, const void *ctx, struct seen *s)
{
	run_with(JOB_BOUND, fn, ctx, s);
}

static void test_results(void **state)
{
	struct seen s;
	char letter = 'y';
	(void)state;
	run(yield, &letter, &s);
	assert_int_equal(s.end.result, 0);
	assert_int_equal(strspn(s.text, "y"), JOB_TEXT_MAX);
	run(refuse, NULL, &s);
	assert_int_equal(s.end.result, -ENOENT);
	assert_string_equal(s.e.text, "there is none");
}

/*
 * One that becomes another program; with the signals of a program of its own, whatever is blocked
 * here.
 */
static void test_programs(void **state)
{
	struct seen s;
	sigset_t all, before;
	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	run_with(JOB_EXECUTES, become, "exit 7", &s);
	assert_int_equal(s.end.result, 0);
	assert_int_equal(s.end.exit_code, 7);
	run_with(JOB_EXECUTES, become, "kill -TERM $$; exit 0", &s);
	assert_int_equal(s.end.exit_code, 128 + SIGTERM);
	run_with(JOB_EXECUTES, become, "read x; test -z \"$x\" && echo nowhere",
		 &s); /* both are /dev/null */
	assert_int_equal(s.end.exit_code, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void test_killed(void **state)
{
	struct loop loop;
	struct seen s = { .loop = &loop };
	struct job *j = NULL, *other = NULL;
	(void)state;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(job_start(&loop, wait_for_ever, NULL, JOB_BOUND, on_done, &s, &j), 0);
	job_kill(j, SIGKILL);
	assert_int_equal(loop_run(&loop), 0);
	assert_int_equal(s.end.result, -EIO); /* it said nothing itself */
	assert_string_equal(s.e.text, "a helper of the shim ended without a result (status 137)");
	/* One of which nobody wants to hear. */
	assert_int_equal(job_start(&loop, wait_for_ever, NULL, JOB_BOUND, on_done, &s, &other), 0);
	job_free(other);
	job_free(NULL);
	loop_deinit(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_results),
		fixture_test(test_programs),
		fixture_test(test_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
