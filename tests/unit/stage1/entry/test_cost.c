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

/* The supervisor has pidfds of @pids, which 0 ends, and another descriptor. */
static void set_pidfds(void **state, const int *pids)
{
	char name[32], text[64];
	assert_int_equal(mkdirat(fixture_dir(state), "10/fdinfo", 0755), 0);
	put(state, 10, "fdinfo/0", "pos:\t0\nflags:\t02\n");
	for (int i = 0; pids[i]; i++) {
		snprintf(name, sizeof(name), "fdinfo/%d", i + 3);
		snprintf(text, sizeof(text), "pos:\t0\nflags:\t02\nPid:\t%d\nNSpid:\t%d\n", pids[i],
			 pids[i]);
		put(state, 10, name, text);
	}
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
	set_pidfds(state, (const int[]){ 13, -1, 11, 12, 0 });
	assert_int_equal(cost_read(fixture_path(state), 10, name_of, &c), 0);
	assert_int_equal(c.supervisor.pid, 10);
	assert_int_equal(c.supervisor.cpu_usec, 5 * tick);
	assert_int_equal(c.supervisor.rss_bytes, 8192);
	assert_int_equal(c.supervisor.pss_bytes, 6144);
	assert_int_equal(c.n_helpers, 2); /* in no order; 13 is gone, and one has ended */
	size_t vsock = strcmp(c.helper_names[0], "vsock") == 0 ? 0 : 1;
	assert_string_equal(c.helper_names[vsock], "vsock");
	assert_int_equal(c.helpers[vsock].pid, 11);
	assert_int_equal(c.helpers[vsock].cpu_usec, 6 * tick);
	assert_string_equal(c.helper_names[1 - vsock], "vmm");
	assert_int_equal(c.helpers[1 - vsock].pid, 12);
	assert_int_equal(c.helpers[1 - vsock].cpu_usec, 7 * tick);
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
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 x 1 0",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 4",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 4 -1 0",
		"1 (run) S 1 1 1 0 -1 0 0 0 0 0 9223372036854775807 1 0",
	};
	int64_t ticks;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cost_of_stat(bad[i], &ticks), -EBADMSG);
	assert_int_equal(cost_of_stat("1 (a b) 7) S 3 1 1 0 -1 0 0 0 0 0 40 2 0", &ticks), 0);
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
