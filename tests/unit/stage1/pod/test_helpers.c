/* SPDX-License-Identifier: Apache-2.0 */
/* On a directory that stands for /proc. */
#include "stage1/pod/helpers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/fixture.h"

static void put(void **state, int fd, const char *text)
{
	char name[32];
	snprintf(name, sizeof(name), "10/fdinfo/%d", fd);
	fixture_write(state, name, text, strlen(text));
}

static void put_pidfd(void **state, int fd, int pid)
{
	char text[64];
	snprintf(text, sizeof(text), "pos:\t0\nflags:\t02\nPid:\t%d\nNSpid:\t%d\n", pid, pid);
	put(state, fd, text);
}

static void make_proc(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "10", 0755), 0);
	assert_int_equal(mkdirat(dir, "10/fdinfo", 0755), 0);
}

/* In the order of the directory, which is any. */
static void test_each_once(void **state)
{
	pid_t pids[POD_HELPERS_MAX];
	assert_int_equal(pod_helpers(fixture_path(state), 10, pids), 0);
	make_proc(state);
	assert_int_equal(pod_helpers(fixture_path(state), 10, pids), 0);
	put(state, 0, "pos:\t0\nflags:\t02\n");
	put(state, 1, "pos:\t0\nPid:\tword\n");
	put_pidfd(state, 3, 21);
	put_pidfd(state, 4, -1);
	put_pidfd(state, 5, 22);
	put_pidfd(state, 6, 21);
	assert_int_equal(pod_helpers(fixture_path(state), 10, pids), 2);
	assert_int_equal(pids[0] + pids[1], 43);
}

static void test_limit(void **state)
{
	pid_t pids[POD_HELPERS_MAX + 1] = { 0 };
	make_proc(state);
	for (int i = 0; i < POD_HELPERS_MAX; i++)
		put_pidfd(state, i, 100 + i);
	assert_int_equal(pod_helpers(fixture_path(state), 10, pids), POD_HELPERS_MAX);
	put_pidfd(state, POD_HELPERS_MAX, 99);
	assert_int_equal(pod_helpers(fixture_path(state), 10, pids), POD_HELPERS_MAX);
	assert_int_equal(pids[POD_HELPERS_MAX], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_each_once),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
