/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With real processes; a FIFO without a writer stands for a counter that the kernel does not yield.
 */
#include "guest-agent/pod/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "tests/support/fixture.h"

#define BLOCKED 1
#define READY   2

static struct cgroup_dir groups;
static struct stats_table *table;
static struct fault fault;

/* Group BLOCKED, which blocks who reads it, and group READY, which does not. */
static void begin(void **state)
{
	char path[256];
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "1", 0755), 0);
	assert_int_equal(mkdirat(dir, "2", 0755), 0);
	snprintf(path, sizeof(path), "%s/1/memory.current", fixture_path(state));
	assert_int_equal(mkfifo(path, 0600), 0);
	fixture_write(state, "2/memory.current", "42\n", 3);
	groups.path = fixture_path(state);
	table = stats_table_new(&groups);
	assert_non_null(table);
}

static int start(unsigned group, uint64_t conn, int64_t id)
{
	return stats_start(table, group, (struct pod_caller){ conn, id }, &fault);
}

/* Waits for the next process to end, which must be one of the table; who is to be answered. */
static int64_t reap(struct agent_app_stats *m, struct fault *f)
{
	int status;
	struct pod_caller to;
	pid_t pid = waitpid(-1, &status, 0);
	assert_true(pid > 0);
	assert_true(stats_reaped(table, pid, &to, m, f));
	assert_false(stats_reaped(table, pid, &to, m, f));
	return to.id;
}

static void test_read(void **state)
{
	struct agent_app_stats m;
	struct fault f = { 0 };
	begin(state);
	assert_int_equal(start(READY, 1, 7), 0);
	assert_int_equal(reap(&m, &f), 7);
	assert_int_equal(f.code, 0);
	assert_int_equal(m.memory_bytes, 42);
	assert_int_equal(m.pids, -1);
	stats_table_free(table);
	stats_table_free(NULL);
}

/* Others are read meanwhile, and whoever has had enough takes its read along. */
static void test_blocked(void **state)
{
	struct agent_app_stats m;
	struct fault f = { 0 };
	begin(state);
	assert_int_equal(start(BLOCKED, 1, 1), 0);
	assert_int_equal(start(READY, 2, 2), 0);
	assert_int_equal(reap(&m, &f), 2);
	assert_int_equal(f.code, 0);
	stats_drop_owner(table, 3);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	stats_drop_owner(table, 1);
	assert_int_equal(reap(&m, &f), 1);
	assert_int_equal(f.code, AGENT_E_INTERNAL);
	assert_string_equal(f.text, "interrupted");
	stats_table_free(table);
}

static void test_limit(void **state)
{
	struct agent_app_stats m;
	struct fault f;
	begin(state);
	for (int i = 0; i < AGENT_STATS_MAX; i++)
		assert_int_equal(start(BLOCKED, i == 0 ? 1 : 2, i), 0);
	assert_int_equal(start(READY, 3, 99), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_LIMIT);
	assert_string_equal(fault.text, "32 statistics are being read");
	stats_drop_owner(table, 1);
	assert_int_equal(reap(&m, &f), 0);
	assert_int_equal(start(READY, 3, 99), 0);
	assert_int_equal(reap(&m, &f), 99);
	stats_drop_owner(table, 2);
	for (int i = 1; i < AGENT_STATS_MAX; i++)
		reap(&m, &f);
	stats_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_read),
		fixture_test(test_blocked),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
