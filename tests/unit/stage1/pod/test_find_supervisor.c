/* SPDX-License-Identifier: Apache-2.0 */
/* With a child that holds the lock. That it is killed, or not, is what test_stop.c is about. */
#include "stage1/pod/find_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

/* A process with the lock, a description of its own. */
static pid_t start_holder(void **state)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(fixture_path(state), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool ok = fd >= 0 && lock_exclusive(fd) == 0 && write(ready[1], "x", 1) == 1;
		while (ok)
			pause();
		_exit(1);
	}
	fd_close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	fd_close(ready[0]);
	return pid;
}

static void put_pid(void **state, const char *text)
{
	fixture_write(state, POD_FILE_PID, text, strlen(text));
}

static void test_found(void **state)
{
	char text[16];
	pid_t found = 0;
	int dir = fixture_dir(state);
	pid_t pid = start_holder(state);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	put_pid(state, text);
	cleanup_fd int pidfd = find_supervisor(dir, &found, NULL);
	assert_true(pidfd >= 0);
	assert_int_equal(found, pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The number remains, and may be anybody's. */
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put_pid(state, text);
	assert_int_equal(find_supervisor(dir, &found, NULL), -ESRCH);
	assert_int_equal(found, pid);
}

/*
 * Somebody holds the lock, but the number is another's. That one has the directory open, too, and
 * even asks for a lock.
 */
static void test_forged_number(void **state)
{
	char text[16];
	pid_t found = 0;
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	pid_t pid = start_holder(state);
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put_pid(state, text);
	assert_int_equal(lock_try_shared(dir), LOCK_TAKEN);
	assert_int_equal(find_supervisor(dir, &found, &e), -EPERM);
	assert_non_null(strstr(e.text, "does not hold the lock of the pod"));
	assert_int_equal(found, 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* A shared lock is none: listings take it. */
	assert_int_equal(lock_try_shared(dir), 0);
	cleanup_fd int other = open(fixture_path(state), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_try_shared(other), 0);
	assert_int_equal(find_supervisor(dir, &found, &e), -ESRCH);
}

/* Seen while it ends: it has no descriptor any more, but the lock is still there. */
static void test_ending(void **state)
{
	char text[16];
	pid_t found = 0;
	int dir = fixture_dir(state);
	pid_t keeper = start_holder(state);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		poll(NULL, 0, 50); /* the parent looks meanwhile */
		kill(keeper, SIGKILL);
		while (lock_try_shared(dir) == LOCK_TAKEN)
			;
		_exit(0);
	}
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	put_pid(state, text);
	assert_int_equal(find_supervisor(dir, &found, NULL), -ESRCH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
}

/* The lock was taken by a process that is gone, as with a detached pod; its child holds it. */
static void test_inherited(void **state)
{
	int ready[2];
	char text[16];
	pid_t found = 0, pid = 0;
	int dir = fixture_dir(state);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (parent == 0) {
		int fd = open(fixture_path(state), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool ok = fd >= 0 && lock_exclusive(fd) == 0;
		if (!ok || fork() != 0)
			_exit(!ok);
		pid = getpid();
		ok = write(ready[1], &pid, sizeof(pid)) == sizeof(pid);
		while (ok)
			pause();
		_exit(1);
	}
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(read(ready[0], &pid, sizeof(pid)), sizeof(pid));
	fd_close(ready[0]);
	fd_close(ready[1]);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	put_pid(state, text);
	cleanup_fd int pidfd = find_supervisor(dir, &found, NULL);
	assert_true(pidfd >= 0);
	assert_int_equal(found, pid);
	kill(pid, SIGKILL);
}

static void test_bad_number(void **state)
{
	static const char *const bad[] = { "", "\n", "1\n", "-2\n", "x\n", "2147483648\n" };
	pid_t found;
	int dir = fixture_dir(state);
	assert_int_equal(find_supervisor(dir, &found, NULL), -ESRCH); /* no file, no lock */
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put_pid(state, bad[i]);
		assert_int_equal(find_supervisor(dir, &found, NULL), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_found),      fixture_test(test_forged_number),
		fixture_test(test_ending),     fixture_test(test_inherited),
		fixture_test(test_bad_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
