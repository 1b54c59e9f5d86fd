/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

struct ctx {
	struct loop loop;
	struct process process;
	int ends;
};

static void on_end(void *arg, struct process *p)
{
	struct ctx *c = arg;
	assert_true(p->ended);
	c->ends++;
	loop_quit(&c->loop);
}

static int start(struct ctx *c, const char *program, const char *script)
{
	static char sh[] = "sh", dash_c[] = "-c";
	char text[256];
	snprintf(text, sizeof(text), "%s", script);
	char *argv[] = { sh, dash_c, text, NULL };
	struct spawn_plan plan = { .program = program, .argv = argv };
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	return process_start(&c->process, &c->loop, &plan, on_end, c);
}

static void finish(struct ctx *c, const char *want)
{
	char how[256];
	assert_int_equal(loop_run(&c->loop), 0);
	assert_int_equal(c->ends, 1);
	process_describe_end(&c->process, how, sizeof(how));
	assert_string_equal(how, want);
	process_deinit(&c->process);
	loop_deinit(&c->loop);
}

static void test_exit_code_and_first_line(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(start(&c, "/bin/sh", "echo the cause >&2; echo more >&2; exit 3"), 0);
	finish(&c, "exit code 3: the cause");
}

static void test_signal(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(start(&c, "/bin/sh", "exec sleep 1000"), 0);
	process_kill(&c.process);
	finish(&c, "killed by signal 9");
}

/* However much it says, only the beginning is kept. */
static void test_much_noise(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(start(&c, "/bin/sh", "echo first >&2; head -c 1000000 /dev/zero >&2"), 0);
	finish(&c, "exit code 0: first");
}

static void test_no_such_program(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(start(&c, "/no/such/program", ""), -ENOENT);
	assert_null(c.process.loop);
	process_deinit(&c.process);
	loop_deinit(&c.loop);
}

/* deinit of a running process leaves no zombie behind. */
static void test_deinit_kills(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(start(&c, "/bin/sh", "exec sleep 1000"), 0);
	pid_t pid = c.process.pid;
	process_deinit(&c.process);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(c.ends, 0);
	loop_deinit(&c.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_exit_code_and_first_line),
		fixture_test(test_signal),
		fixture_test(test_much_noise),
		fixture_test(test_no_such_program),
		fixture_test(test_deinit_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
