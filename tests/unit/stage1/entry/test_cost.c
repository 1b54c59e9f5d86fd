/* SPDX-License-Identifier: Apache-2.0 */
/* On a directory that stands for /proc. */
#include "stage1/entry/cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

#define ROLLUP "5-7 ---p 00000000 00:00 0 [rollup]\nRss:   8 kB\nPss:   6 kB\nPss_Dirty: 1 kB\n"

static void put(void **state, int pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	fixture_write(state, path, text, strlen(text));
}

/* A process with @ticks of user time and one of the system's. */
static void make(void **state, int pid, int parent, const char *comm, int ticks)
{
	char text[256];
	int dir = fixture_dir(state);
	snprintf(text, sizeof(text), "%d", pid);
	assert_int_equal(mkdirat(dir, text, 0755), 0);
	snprintf(text, sizeof(text), "%s\n", comm);
	put(state, pid, "comm", text);
	snprintf(text, sizeof(text), "%d (%s) S %d 1 1 0 -1 4194304 99 0 0 0 %d 1 7 7 20 0 1 0\n",
		 pid, comm, parent, ticks);
	put(state, pid, "stat", text);
	put(state, pid, "smaps_rollup", ROLLUP);
}

static void set_children(void **state, const char *text)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "10/task", 0755), 0);
	assert_int_equal(mkdirat(dir, "10/task/10", 0755), 0);
	put(state, 10, "task/10/children", text);
}

static const char *name_of(const char *comm)
{
	return strcmp(comm, "husk-vsock") == 0 ? "vsock" : "vmm";
}

static void test_pod(void **state)
{
	struct pod_cost c;
	int64_t tick = 1000000 / sysconf(_SC_CLK_TCK);
	make(state, 10, 1, "run) S (", 4);
	make(state, 11, 10, "husk-vsock", 5);
	make(state, 12, 10, "qemu-system-x86", 6);
	make(state, 14, 3, "stranger", 9); /* the number is somebody else's by now */
	make(state, 15, 10, "qemu-system-x86", 9);
	set_children(state, "13 14 11 12 15 ");
	assert_int_equal(cost_read(fixture_path(state), 10, name_of, &c), 0);
	assert_int_equal(c.supervisor.pid, 10);
	assert_int_equal(c.supervisor.cpu_usec, 5 * tick);
	assert_int_equal(c.supervisor.rss_bytes, 8192);
	assert_int_equal(c.supervisor.pss_bytes, 6144);
	assert_int_equal(c.n_helpers, 2); /* a second of one name is none */
	assert_string_equal(c.helper_names[0], "vsock");
	assert_int_equal(c.helpers[0].pid, 11);
	assert_int_equal(c.helpers[0].cpu_usec, 6 * tick);
	assert_string_equal(c.helper_names[1], "vmm");
	assert_int_equal(c.helpers[1].pid, 12);
	assert_int_equal(c.helpers[1].cpu_usec, 7 * tick);
}

/* Without the right to look at the process its share is not known. */
static void test_without_rollup(void **state)
{
	struct pod_cost c;
	make(state, 10, 1, "run", 4);
	put(state, 10, "status", "Name:\trun\nVmHWM:\t 9 kB\nVmRSS:\t  20 kB\n");
	assert_int_equal(unlinkat(fixture_dir(state), "10/smaps_rollup", 0), 0);
	assert_int_equal(cost_read(fixture_path(state), 10, name_of, &c), 0);
	assert_int_equal(c.supervisor.rss_bytes, 20480);
	assert_int_equal(c.supervisor.pss_bytes, -1);
	assert_int_equal(c.n_helpers, 0);
	put(state, 10, "status", "Name:\trun\nState:\tZ (zombie)\n");
	assert_int_equal(cost_read(fixture_path(state), 10, name_of, &c), -ESRCH);
	assert_int_equal(cost_read(fixture_path(state), 99, name_of, &c), -ESRCH);
}

static void test_stat(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"1 run S 1 1 1 0 -1 0 0 0 0 0 4 1 0",
		"1 (run) S",
		"1 (run) S x 1 1 0 -1 0 0 0 0 0 4 1 0",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 4",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 4 -1 0",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 9223372036854775807 1 0",
	};
	pid_t parent;
	int64_t ticks;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cost_of_stat(bad[i], &parent, &ticks), -EBADMSG);
	assert_int_equal(cost_of_stat("1 (a b) 7) S 3 1 1 0 -1 0 0 0 0 0 40 2 0", &parent, &ticks),
			 0);
	assert_int_equal(parent, 3);
	assert_int_equal(ticks, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_pod),
		fixture_test(test_without_rollup),
		fixture_test(test_stat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
