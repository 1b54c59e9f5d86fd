/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/listener.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"

#define NAME "socket"

static void enter(void **state)
{
	assert_int_equal(fchdir(fixture_dir(state)), 0);
}

/* The paths differ by each part. */
static void test_path(void **state)
{
	static const char *const said[][3] = {
		{ "/a", "ns", "id" },
		{ "/b", "ns", "id" },
		{ "/a", "other", "id" },
		{ "/a", "ns", "other" },
	};
	char paths[ARRAY_SIZE(said)][PATH_MAX], again[PATH_MAX];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		assert_int_equal(listener_path(said[i][0], said[i][1], said[i][2], paths[i]), 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(paths[i], paths[k]);
	}
	assert_int_equal(listener_path("/a", "ns", "id", again), 0);
	assert_string_equal(again, paths[0]);
	assert_int_equal(strlen(again), strlen(LISTENER_DIR) + 1 + 64);
	assert_true(strlen(again) < 108); /* as long as a socket's name may be */
}

static void test_open(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	enter(state);
	int fd = listener_open(NAME, &e);
	assert_true(fd >= 0);
	assert_int_equal(stat(NAME, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(listener_open(NAME, &e), -EADDRINUSE);
	assert_string_equal(e.text, "a shim for this container runs already");
	close(fd); /* its shim was killed */
	fd = listener_open(NAME, &e);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listener_open("missing/" NAME, &e), -ENOENT);
	listener_end(NAME);
	assert_int_equal(stat(NAME, &st), -1);
}

/* A child that listens in place of its parent; it serves nobody. */
static pid_t start_child(int listen_fd)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool claimed = listener_claim(listen_fd) == 0;
		if (claimed && write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(EXIT_FAILURE);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(listen_fd);
	return pid;
}

/* Whoever listens is ended, stopped or not, and it is the child, not who has made the socket. */
static void test_end(void **state)
{
	enter(state);
	for (int stopped = 0; stopped < 2; stopped++) {
		struct err e = ERR_INIT;
		struct stat st;
		int status;
		pid_t pid = start_child(listener_open(NAME, &e));
		if (stopped) {
			kill(pid, SIGSTOP);
			assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		}
		listener_end(NAME);
		assert_int_equal(waitpid(pid, &status, WNOHANG), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_int_equal(stat(NAME, &st), -1);
	}
}

/* A name that nobody listens at goes, and one that is not there is no failure. */
static void test_end_of_nobody(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	enter(state);
	listener_end(NAME);
	close(listener_open(NAME, &e));
	assert_int_equal(stat(NAME, &st), 0);
	listener_end(NAME);
	assert_int_equal(stat(NAME, &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_path),
		fixture_test(test_open),
		fixture_test(test_end),
		fixture_test(test_end_of_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
