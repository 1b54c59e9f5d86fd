/* SPDX-License-Identifier: Apache-2.0 */
/* The program, run in directories that look like pods. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
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

static void expect_end(pid_t pid, int sig)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

/* A process that works in @dir. */
static pid_t start_in(int dir)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (fchdir(dir) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Who works in the pod directory is killed, who works below it or elsewhere is not. */
static void test_gc(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(call(GC_PROGRAM, dir, NULL), 0);
	assert_int_equal(mkdirat(dir, "sub", 0755), 0);
	cleanup_fd int sub = openat(dir, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t reader = start_in(dir);
	assert_int_equal(call(GC_PROGRAM, dir, "--pod-stays"), 0);
	assert_int_equal(waitpid(reader, NULL, WNOHANG), 0);
	kill(reader, SIGTERM);
	expect_end(reader, SIGTERM);
	pid_t one = start_in(dir), two = start_in(dir), other = start_in(sub);
	assert_int_equal(call(GC_PROGRAM, dir, "--debug"), 0);
	expect_end(one, SIGKILL);
	expect_end(two, SIGKILL);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	kill(other, SIGKILL);
	expect_end(other, SIGKILL);
	assert_int_equal(call(GC_PROGRAM, dir, "--unknown"), EXIT_HUSK_FAILURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_gc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
