/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

/* A new open file description of the test's directory. */
static int open_dir(void **state)
{
	int fd = openat(fixture_dir(state), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void test_conflicts(void **state)
{
	cleanup_fd int a = open_dir(state);
	cleanup_fd int b = open_dir(state);
	assert_int_equal(lock_exclusive(a), 0);
	assert_int_equal(lock_try_exclusive(b), LOCK_TAKEN);
	assert_int_equal(lock_try_shared(b), LOCK_TAKEN);
	assert_int_equal(lock_release(a), 0);
	assert_int_equal(lock_try_shared(b), 0);
	assert_int_equal(lock_shared(a), 0);
	assert_int_equal(lock_try_exclusive(a), LOCK_TAKEN);
	assert_int_equal(lock_release(b), 0);
	assert_int_equal(lock_try_exclusive(a), 0);
	assert_int_equal(lock_try_exclusive(a), 0); /* its own is not a conflict */
	assert_int_equal(lock_try_exclusive(-EBADF), -EBADF);
}

/* A probe sees the exclusive lock only, and is none afterwards. */
static void test_probe(void **state)
{
	cleanup_fd int a = open_dir(state);
	cleanup_fd int b = open_dir(state);
	assert_int_equal(lock_try_exclusive(a), 0);
	assert_int_equal(lock_probe(b), LOCK_TAKEN);
	assert_int_equal(lock_release(a), 0);
	assert_int_equal(lock_try_shared(a), 0);
	assert_int_equal(lock_probe(b), 0);
	assert_int_equal(lock_release(a), 0);
	assert_int_equal(lock_try_exclusive(a), 0);
	assert_int_equal(lock_probe(-EBADF), -EBADF);
}

/* Starts a child that holds what it inherits until @ret_stop is closed. */
static pid_t start_holder(int *ret_stop)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;
		close(p[1]);
		_exit(read(p[0], &c, 1) == 0 ? 0 : 1);
	}
	fd_close(p[0]);
	*ret_stop = p[1];
	return pid;
}

/* The lock lives as long as the last process that inherited the descriptor. */
static void test_inherited(void **state)
{
	cleanup_fd int a = open_dir(state);
	cleanup_fd int b = open_dir(state);
	assert_int_equal(lock_try_exclusive(a), 0);
	int stop, status;
	pid_t pid = start_holder(&stop);
	a = fd_close(a);
	assert_int_equal(lock_try_exclusive(b), LOCK_TAKEN);
	fd_close(stop);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(lock_try_exclusive(b), 0);
}

static void test_released_by_death(void **state)
{
	cleanup_fd int a = open_dir(state);
	cleanup_fd int b = open_dir(state);
	assert_int_equal(lock_try_exclusive(a), 0);
	int stop, status;
	pid_t pid = start_holder(&stop);
	a = fd_close(a);
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* Waits for the lock, not for the process. */
	assert_int_equal(lock_exclusive(b), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd_close(stop);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* A signal while waiting is not a failure. */
static void test_wait_is_not_interrupted(void **state)
{
	cleanup_fd int a = open_dir(state);
	cleanup_fd int b = open_dir(state);
	assert_int_equal(lock_try_exclusive(a), 0);
	int stop, p[2];
	pid_t holder = start_holder(&stop);
	a = fd_close(a);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	struct sigaction act = { .sa_handler = on_alarm };
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	pid_t parent = getpid();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* One signal after the other until the parent had some while it waits. */
		char c;
		close(p[1]);
		fcntl(p[0], F_SETFL, O_NONBLOCK);
		for (int i = 0; i < 100; i++) {
			kill(parent, SIGUSR1);
			sched_yield();
		}
		close(stop);
		kill(holder, SIGKILL);
		_exit(read(p[0], &c, 1) < 0 ? 0 : 1);
	}
	assert_int_equal(lock_exclusive(b), 0);
	fd_close(p[0]);
	fd_close(p[1]);
	fd_close(stop);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(alarms > 0);
	signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_conflicts),
		fixture_test(test_probe),
		fixture_test(test_inherited),
		fixture_test(test_released_by_death),
		fixture_test(test_wait_is_not_interrupted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
