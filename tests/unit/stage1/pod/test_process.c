/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
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

static int start_as(struct ctx *c, const char *program, const char *script, bool is_keeper)
{
	static char sh[] = "sh", dash_c[] = "-c";
	char text[256];
	snprintf(text, sizeof(text), "%s", script);
	char *argv[] = { sh, dash_c, text, NULL };
	struct spawn_plan plan = { .program = program, .argv = argv };
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	return is_keeper ? process_start_keeper(&c->process, &c->loop, &plan, on_end, c)
			 : process_start(&c->process, &c->loop, &plan, on_end, c);
}

static int start(struct ctx *c, const char *program, const char *script)
{
	return start_as(c, program, script, false);
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

/* What setpriv(1) says of a helper; of the caller. */
static char *dump(void **state, bool is_keeper)
{
	struct ctx c;
	/* It is asked of a program that the process itself becomes: children do not inherit it. */
	cleanup_fd int log =
		openat(fixture_dir(state), "log", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	char script[256];
	snprintf(script, sizeof(script), "exec setpriv --dump >%s/log", fixture_path(state));
	assert_int_equal(start_as(&c, "/bin/sh", script, is_keeper), 0);
	finish(&c, "exit code 0");
	char *text = NULL;
	assert_int_equal(file_read_fd(log, 65536, &text, NULL), 0);
	return text;
}

/*
 * A supervisor that is killed leaves neither QEMU nor husk-vsock, and neither becomes more than it
 * is; but whoever takes care of others stays to do so, and may start set-ID programs.
 */
static void test_dies_with_parent(void **state)
{
	cleanup_free char *helper = dump(state, false);
	assert_non_null(strstr(helper, "Parent death signal: KILL\n"));
	assert_non_null(strstr(helper, "no_new_privs: 1\n"));
	cleanup_free char *keeper = dump(state, true);
	assert_non_null(strstr(keeper, "Parent death signal: [none]\n"));
	assert_true(strstr(keeper, "no_new_privs: 0\n") || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
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

/* A secret of the caller, a terminal, a core file of guest memory: nothing for a helper. */
static void test_environment_session_core(void **state)
{
	(void)state;
	struct ctx c;
	assert_int_equal(setenv("SECRET", "password", 1), 0);
	assert_int_equal(
		start(&c, "/bin/sh",
		      "tr '\\0' ' ' </proc/$$/environ >&2; "
		      "read -r p n s pp pg sid tty rest </proc/$$/stat; "
		      "[ $sid = $$ ] && [ $tty = 0 ] && [ $(ulimit -c) = 0 ]; echo $? >&2"),
		0);
	finish(&c, "exit code 0: " PROCESS_MARK " 0");
	unsetenv("SECRET");
}

/*
 * As systemd stops a service, or a terminal that is closed: its parent ends it when it is time.
 * (Bash: some shells unblock all signals.)
 */
static void test_signals_for_everybody(void **state)
{
	(void)state;
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct ctx c;
	assert_int_equal(start(&c, "/bin/bash", "sleep 0.2; echo alive >&2; kill -9 $$"), 0);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		assert_int_equal(kill(c.process.pid, signals[i]), 0);
	finish(&c, "killed by signal 9: alive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_exit_code_and_first_line),
		fixture_test(test_signal),
		fixture_test(test_much_noise),
		fixture_test(test_no_such_program),
		fixture_test(test_deinit_kills),
		fixture_test(test_environment_session_core),
		fixture_test(test_signals_for_everybody),
		fixture_test(test_dies_with_parent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
