/* SPDX-License-Identifier: Apache-2.0 */
/* That a child of a test ends where it fails, and does not go on with the parent's tests. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/spawn.h"
#include "tests/support/fixture.h"

/* By what signal a child that does @fn ends, or 0. */
static int signal_of(void (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(spawn_wait(pid, &status), 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fail_assertion(void)
{
	assert_int_equal(getpid(), getppid());
}

static void nothing(void)
{
}

static int given;

static void raise_given(void)
{
	raise(given);
}

static void test_ends(void **state)
{
	(void)state;
	static const int signals[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS, SIGABRT };
	assert_int_equal(signal_of(nothing), 0);
	assert_int_equal(signal_of(fail_assertion), SIGABRT);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		given = signals[i];
		assert_int_equal(signal_of(raise_given), given);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
