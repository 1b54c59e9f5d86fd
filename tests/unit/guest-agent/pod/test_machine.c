/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of real processes. What is done to the whole machine, the system tests see. */
#include "guest-agent/pod/machine.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

enum manner {
	DEFAULT,
	CAUGHT,
	IGNORED,
	BLOCKED
};

static void on_signal(int sig)
{
	(void)sig;
}

/* A process that waits, with signal @sig as @how says. */
static pid_t start(int sig, enum manner how)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t set;
		sigemptyset(&set);
		signal(sig, how == CAUGHT ? on_signal : how == IGNORED ? SIG_IGN : SIG_DFL);
		if (how == BLOCKED)
			sigaddset(&set, sig);
		sigprocmask(SIG_SETMASK, &set, NULL);
		if (write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_default(void **state)
{
	static const int signals[] = { SIGHUP, SIGTERM, SIGUSR2, 34, 64 };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		for (enum manner how = DEFAULT; how <= BLOCKED; how++) {
			pid_t pid = start(signals[i], how);
			bool got = machine_has_default(pid, signals[i]);
			bool other = machine_has_default(pid, SIGINT);
			kill(pid, SIGKILL);
			assert_int_equal(waitpid(pid, NULL, 0), pid);
			assert_int_equal(got, how == DEFAULT);
			assert_true(other);
			assert_false(machine_has_default(pid, signals[i])); /* nobody */
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
