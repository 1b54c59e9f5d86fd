/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

/* 0 is never returned: the signal ends the process when it may come. */
static int be_interrupted(int signal_number)
{
	struct interrupt i = INTERRUPT_INIT;
	if (interrupt_hold(&i) < 0 || is_readable(i.fd))
		return 1;
	raise(signal_number);
	if (!is_readable(i.fd))
		return 2;
	interrupt_release(&i);
	return 3;
}

static void test_signals(void **state)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		int status;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			signal(signals[i], SIG_DFL);
			_exit(be_interrupted(signals[i]));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
	}
}

static void test_nothing_happens(void **state)
{
	(void)state;
	struct interrupt i = INTERRUPT_INIT;
	sigset_t before, after;
	interrupt_release(&i);
	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(interrupt_hold(&i), 0);
	interrupt_release(&i);
	assert_int_equal(i.fd, -EBADF);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_signals),
		fixture_test(test_nothing_happens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
