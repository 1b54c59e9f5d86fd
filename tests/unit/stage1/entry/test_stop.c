/* SPDX-License-Identifier: Apache-2.0 */
/* The program, run in directories that look like pods. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define UUID "12345678-1234-4123-8123-123456789abc"

/* Runs @program in @dir; yields its exit code. */
static int call(const char *program, int dir, const char *option)
{
	char *argv[] = { (char[]){ "program" }, (char *)(uintptr_t)(option ? option : UUID),
			 option ? (char[]){ UUID } : NULL, NULL };
	struct spawn_plan plan = {
		.program = program, .argv = argv, .change_dir = true, .dir_fd = dir
	};
	pid_t pid;
	int status;
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void write_pid(void **state, const char *name, pid_t pid)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%d\n", (int)pid);
	fixture_write(state, name, text, (size_t)len);
}

/* A process that holds the lock of the fixture's directory through a description of its own. */
static pid_t start_holder(void **state)
{
	int ready[2];
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
	char byte;
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void expect_end(pid_t pid, int sig)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

static void test_stop(void **state)
{
	int dir = fixture_dir(state);
	pid_t pid = start_holder(state);
	write_pid(state, POD_FILE_PID, pid);
	assert_int_equal(call(STOP_PROGRAM, dir, NULL), 0);
	expect_end(pid, SIGTERM);
	pid = start_holder(state);
	write_pid(state, POD_FILE_PID, pid);
	assert_int_equal(call(STOP_PROGRAM, dir, "--force"), 0);
	expect_end(pid, SIGKILL);
}

static void end_slowly(int sig)
{
	(void)sig;
	usleep(200000); /* check-style allows sleep: it is what takes long */
	_exit(0);
}

/*
 * A process to which @on_term says what its parent's end is. Its number goes to @alive, which is
 * closed with its end.
 */
static int start_helper(int alive, void (*on_term)(int sig))
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		pid_t self = getpid();
		signal(SIGTERM, on_term);
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
			_exit(1);
		(void)!write(alive, &self, sizeof(self));
		for (;;)
			pause();
	}
	close(alive);
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* As start_holder(), and it has a helper, whose end closes what *ret_alive reads. */
static pid_t start_holder_with_helper(void **state, void (*on_term)(int sig), int *ret_alive,
				      pid_t *ret_helper)
{
	int alive[2];
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(fixture_path(state), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int helper =
			fd >= 0 && lock_exclusive(fd) == 0 ? start_helper(alive[1], on_term) : -1;
		while (helper >= 0)
			pause();
		_exit(1);
	}
	close(alive[1]);
	assert_int_equal(read(alive[0], ret_helper, sizeof(*ret_helper)), sizeof(*ret_helper));
	*ret_alive = alive[0];
	return pid;
}

/* What the pod had is free when the command returns: nothing that serves it is left. */
static void test_helpers_are_awaited(void **state)
{
	int alive, dir = fixture_dir(state);
	pid_t helper, pid = start_holder_with_helper(state, end_slowly, &alive, &helper);
	struct pollfd p = { .fd = alive, .events = POLLIN };
	write_pid(state, POD_FILE_PID, pid);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(call(STOP_PROGRAM, dir, "--force"), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	close(alive);
	expect_end(pid, SIGKILL);
}

/* One that stays keeps nobody for ever, and the pod is killed all the same. */
static void test_helper_that_stays(void **state)
{
	int alive, dir = fixture_dir(state);
	pid_t helper, pid = start_holder_with_helper(state, SIG_IGN, &alive, &helper);
	struct pollfd p = { .fd = alive, .events = POLLIN };
	write_pid(state, POD_FILE_PID, pid);
	assert_int_equal(call(STOP_PROGRAM, dir, "--force"), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	expect_end(pid, SIGKILL);
	kill(helper, SIGKILL);
	assert_int_equal(poll(&p, 1, -1), 1);
	close(alive);
}

/* The number in the file may by now be somebody else's: without the lock nobody is signalled. */
static void test_of_ended(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(call(STOP_PROGRAM, dir, NULL), 0);
	pid_t bystander = fork();
	if (bystander == 0) {
		pause();
		_exit(1);
	}
	write_pid(state, POD_FILE_PID, bystander);
	assert_int_equal(call(STOP_PROGRAM, dir, "--force"), 0);
	assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
	kill(bystander, SIGKILL);
	assert_int_equal(waitpid(bystander, NULL, 0), bystander);
}

/* While the pod runs, a number that is not its supervisor's was forged. */
static void test_forged_number(void **state)
{
	int dir = fixture_dir(state);
	pid_t pid = start_holder(state);
	pid_t bystander = fork();
	if (bystander == 0) {
		pause();
		_exit(1);
	}
	write_pid(state, POD_FILE_PID, bystander);
	assert_int_equal(call(STOP_PROGRAM, dir, "--force"), EXIT_HUSK_FAILURE);
	assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
	kill(bystander, SIGKILL);
	assert_int_equal(waitpid(bystander, NULL, 0), bystander);
	kill(pid, SIGKILL);
	expect_end(pid, SIGKILL);
}

static void test_refuses(void **state)
{
	static const char *const bad[] = { "", "1", "-5", "0", "abc", "99999999999", "12 13" };
	int dir = fixture_dir(state);
	pid_t pid = start_holder(state);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fixture_write(state, POD_FILE_PID, bad[i], strlen(bad[i]));
		assert_int_equal(call(STOP_PROGRAM, dir, NULL), EXIT_HUSK_FAILURE);
	}
	assert_int_equal(call(STOP_PROGRAM, dir, "--unknown"), EXIT_HUSK_FAILURE);
	kill(pid, SIGKILL);
	expect_end(pid, SIGKILL);
}

/* Writes the number when somebody has looked into the directory. */
static pid_t start_writer(void **state, pid_t number)
{
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char event[4096];
		int dir = fixture_dir(state), fd = inotify_init1(IN_CLOEXEC);
		bool ok = inotify_add_watch(fd, fixture_path(state), IN_OPEN) >= 0 &&
			  write(ready[1], "x", 1) == 1 && read(fd, event, sizeof(event)) > 0;
		write_pid(state, "pid.new", number);
		_exit(!ok || renameat(dir, "pid.new", dir, POD_FILE_PID) < 0);
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* The file comes a moment after the lock. */
static void test_waits_for_number(void **state)
{
	int dir = fixture_dir(state), status;
	pid_t pid = start_holder(state);
	pid_t writer = start_writer(state, pid);
	assert_int_equal(call(STOP_PROGRAM, dir, NULL), 0);
	expect_end(pid, SIGTERM);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_stop),
		fixture_test(test_helpers_are_awaited),
		fixture_test(test_helper_that_stays),
		fixture_test(test_of_ended),
		fixture_test(test_forged_number),
		fixture_test(test_refuses),
		fixture_test(test_waits_for_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
