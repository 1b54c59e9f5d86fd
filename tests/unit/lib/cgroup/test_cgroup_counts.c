/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On files that stand for the kernel's. With the real ones: guest-agent/app/test_cgroup_host.c and
 * stage1/pod/test_pod_limits.c.
 */
#include "lib/cgroup/cgroup_counts.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

static void put(void **state, const char *name, const char *text)
{
	assert_int_equal(file_replace_at(fixture_dir(state), name, text, strlen(text), 0600), 0);
}

static struct agent_app_stats counts(void **state, bool is_v1)
{
	const struct cgroup_controller all = { fixture_dir(state), is_v1 };
	const struct cgroup_controllers c = CGROUP_CONTROLLERS_IN(all);
	struct agent_app_stats m;
	cgroup_counts_read(&c, &m);
	return m;
}

static void assert_counts(struct agent_app_stats m, struct agent_app_stats want)
{
	assert_memory_equal(&m, &want, sizeof(m));
}

static void test_version_2(void **state)
{
	put(state, "cpu.stat",
	    "usage_usec 12\nuser_usec 7\nsystem_usec 5\nnr_throttled 9\nthrottled_usec 3\n");
	put(state, "cpu.max", "25000 100000\n");
	put(state, "memory.current", "4096\n");
	put(state, "memory.peak", "8192\n");
	put(state, "memory.max", "max\n");
	put(state, "memory.events", "low 0\noom 4\noom_kill 2\noom_group_kill 1\n");
	put(state, "memory.stat",
	    "anon 100\nfile 200\nkernel 9\ninactive_file 150\nactive_file 50\npgfault 7\npgmajfault 3\n");
	put(state, "pids.current", "1\n");
	put(state, "pids.max", "4194304\n");
	put(state, "io.stat",
	    "8:16 rbytes=10 wbytes=0 rios=1 wios=0 dbytes=7 dios=1\n"
	    "8:0 rbytes=5 wbytes=6 rios=1 wios=1 dbytes=0 dios=0\n");
	assert_counts(counts(state, false),
		      (struct agent_app_stats){ .cpu_usec = 12,
						.user_usec = 7,
						.system_usec = 5,
						.throttled_usec = 3,
						.memory_bytes = 4096,
						.memory_peak_bytes = 8192,
						.memory_limit = -1,
						.pids = 1,
						.pids_limit = 4194304,
						.io_read_bytes = 15,
						.io_write_bytes = 6,
						.oom_kills = 2,
						.cpu_limit_millis = 250,
						.memory_anon_bytes = 100,
						.memory_file_bytes = 200,
						.memory_inactive_file_bytes = 150,
						.page_faults = 7,
						.major_page_faults = 3 });
}

static void test_version_1(void **state)
{
	int64_t tick = 1000000 / sysconf(_SC_CLK_TCK);
	put(state, "cpuacct.usage", "12999\n");
	put(state, "cpuacct.stat", "user 7\nsystem 5\n");
	put(state, "cpu.stat", "nr_periods 4\nnr_throttled 9\nthrottled_time 3000\n");
	put(state, "cpu.cfs_quota_us", "150000\n");
	put(state, "cpu.cfs_period_us", "100000\n");
	put(state, "memory.usage_in_bytes", "4096\n");
	put(state, "memory.max_usage_in_bytes", "8192\n");
	put(state, "memory.limit_in_bytes", "16384\n");
	put(state, "memory.oom_control", "oom_kill_disable 0\noom_kill 2\n");
	put(state, "memory.stat",
	    "cache 1\nrss 1\npgfault 1\ninactive_file 1\ntotal_cache 200\ntotal_rss 100\n"
	    "total_pgfault 7\ntotal_pgmajfault 3\ntotal_inactive_file 150\n");
	put(state, "pids.current", "1\n");
	put(state, "pids.max", "max\n");
	put(state, "blkio.throttle.io_service_bytes",
	    "8:16 Read 10\n8:16 Write 0\n8:16 Sync 9\n8:16 Async 1\n8:16 Total 10\n"
	    "8:0 Read 5\n8:0 Write 6\n8:0 Total 11\nTotal 21\n");
	assert_counts(counts(state, true),
		      (struct agent_app_stats){ .cpu_usec = 12,
						.user_usec = 7 * tick,
						.system_usec = 5 * tick,
						.throttled_usec = 3,
						.memory_bytes = 4096,
						.memory_peak_bytes = 8192,
						.memory_limit = 16384,
						.pids = 1,
						.pids_limit = -1,
						.io_read_bytes = 15,
						.io_write_bytes = 6,
						.oom_kills = 2,
						.cpu_limit_millis = 1500,
						.memory_anon_bytes = 100,
						.memory_file_bytes = 200,
						.memory_inactive_file_bytes = 150,
						.page_faults = 7,
						.major_page_faults = 3 });
}

/* A group that has not touched a disk has read nothing; without a controller nothing is known. */
static void test_little(void **state)
{
	const struct cgroup_controllers nowhere = CGROUP_CONTROLLERS_NONE;
	struct agent_app_stats m;
	cgroup_counts_read(&nowhere, &m);
	assert_counts(m, AGENT_APP_STATS_NONE);
	assert_int_equal(cgroup_oom_kills(&nowhere.memory), -1);
	assert_counts(counts(state, false), AGENT_APP_STATS_NONE);
	assert_counts(counts(state, true), AGENT_APP_STATS_NONE);
	put(state, "io.stat", "");
	put(state, "blkio.throttle.io_service_bytes", "Total 0\n");
	for (int v1 = 0; v1 <= 1; v1++) {
		struct agent_app_stats want = AGENT_APP_STATS_NONE;
		want.io_read_bytes = want.io_write_bytes = 0;
		assert_counts(counts(state, v1), want);
	}
}

/* What is no number, or too large for one, is not there; the largest is. */
static void test_nonsense(void **state)
{
	put(state, "io.stat", "8:0 rbytes=9223372036854775807 wbytes=1\n8:1 rbytes=1 wbytes=x\n");
	put(state, "cpu.stat", "usage_usec\nuser_usec 9223372036854775808\nxsystem_usec 1\n");
	put(state, "memory.limit_in_bytes", "9223372036854771712\n"); /* as without one */
	put(state, "memory.usage_in_bytes", "9223372036854775807\n");
	put(state, "cpuacct.usage", "nonsense\n");
	put(state, "cpuacct.stat", "user 9223372036854775807\nsystem\n");
	assert_counts(counts(state, false), AGENT_APP_STATS_NONE);
	struct agent_app_stats want = AGENT_APP_STATS_NONE;
	want.memory_bytes = INT64_MAX;
	assert_counts(counts(state, true), want);
}

static void expect_kills(void **state, bool is_v1, const char *text, int64_t kills)
{
	const struct cgroup_controller memory = { fixture_dir(state), is_v1 };
	put(state, is_v1 ? "memory.oom_control" : "memory.events", text);
	assert_int_equal(cgroup_oom_kills(&memory), kills);
}

static void test_oom_kills(void **state)
{
	expect_kills(state, false, "low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\n", 3);
	expect_kills(state, false, "oom_kill 0\noom_group_kill 1\n", 0);
	expect_kills(state, false, "low 0\noom 1\n", -1);
	expect_kills(state, true, "oom_kill_disable 1\nunder_oom 1\noom_kill 10\n", 10);
	expect_kills(state, true, "oom_kill_disable 1\nunder_oom 1\n", -1); /* before Linux 4.13 */
	expect_kills(state, true, "oom_kill -1\n", -1);
	expect_kills(state, true, "", -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_version_2), fixture_test(test_version_1),
		fixture_test(test_little),    fixture_test(test_nonsense),
		fixture_test(test_oom_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
