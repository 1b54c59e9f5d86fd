/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static pid_t new_namespace(void **state)
{
	char path[256];
	pid_t init = 0;
	snprintf(path, sizeof(path), "%s/empty", fixture_path(state));
	assert_int_equal(pidns_new(path, &init), 0);
	assert_true(init > 0);
	return init;
}

static int status_of(pid_t pid)
{
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void end_namespace(pid_t init)
{
	assert_int_equal(kill(init, SIGKILL), 0);
	assert_int_equal(status_of(init), SIGKILL);
}

/* Children of ours, numbered in there; what comes after is where it always was. */
static void test_fork(void **state)
{
	pid_t init = new_namespace(state);
	for (int number = 2; number < 4; number++) {
		pid_t pid = pidns_fork(init, -1);
		if (pid == 0)
			_exit(getpid() == number && getppid() == 0 ? 7 : 8);
		assert_true(pid > 0);
		assert_int_equal(WEXITSTATUS(status_of(pid)), 7);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(getppid() == 0);
	assert_int_equal(status_of(pid), 0);
	end_namespace(init);
}

/* A process that is left, and its child that lost its parent. */
static void test_end(void **state)
{
	pid_t init = new_namespace(state);
	int fds[2];
	char byte;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = pidns_fork(init, -1);
	if (pid == 0) {
		if (fork() > 0)
			_exit(fork() < 0);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(status_of(pid), 0);
	end_namespace(init);
	assert_int_equal(read(fds[0], &byte, 1), 0); /* nobody has the other end any more */
	close(fds[0]);
}

static void test_ended(void **state)
{
	pid_t init = new_namespace(state);
	assert_int_equal(kill(init, SIGKILL), 0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)init, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(pidns_fork(init, -1), -ESRCH);
	assert_int_equal(status_of(init), SIGKILL);
	assert_true(pidns_fork(init, -1) < 0);
}

/* Without its root directory, the first process does not stay. */
static void test_no_root(void **state)
{
	(void)state;
	pid_t init;
	assert_int_equal(pidns_new("/no/such/directory", &init), 0);
	assert_true(WIFEXITED(status_of(init)));
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces need root");
		return 77;
	}
	sigset_t all; /* as in the agent */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	const struct CMUnitTest tests[] = {
		fixture_test(test_fork),
		fixture_test(test_end),
		fixture_test(test_ended),
		fixture_test(test_no_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
