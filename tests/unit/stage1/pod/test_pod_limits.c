/* SPDX-License-Identifier: Apache-2.0 */
/* Limits written to directories that look like groups; test_pod_cgroup has those of this host. */
#include "stage1/pod/pod_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

static const struct cgroup_limits limits = {
	.memory_max = INT64_C(5) << 30, .cpu_millis = 3000, .cpu_weight = 300, .pids_max = 515
};

/* A directory with these files; NULL ends them. */
static int fake_group(void **state, const char *name, const char *const *files)
{
	assert_int_equal(mkdirat(fixture_dir(state), name, 0700), 0);
	int dir = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (; *files; files++)
		assert_int_equal(file_replace_at(dir, *files, "", 0, 0600), 0);
	return dir;
}

static void assert_file(int dir, const char *name, const char *text)
{
	cleanup_free char *got = NULL;
	assert_int_equal(file_read_at(dir, name, 64, &got, NULL), 0);
	assert_string_equal(got, text);
}

static void test_version_2(void **state)
{
	static const char *const files[] = { "memory.max", "memory.oom.group", "pids.max",
					     "cpu.weight", "cpu.max",          NULL };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_UNIFIED] = fake_group(state, "g", files);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &limits, &e), 0);
	assert_file(dir, "memory.max", "5368709120");
	assert_file(dir, "memory.oom.group", "1");
	assert_file(dir, "pids.max", "515");
	assert_file(dir, "cpu.weight", "300");
	assert_file(dir, "cpu.max", "300000 100000");
}

static void test_version_1(void **state)
{
	static const char *const memory[] = { "memory.limit_in_bytes", NULL };
	static const char *const cpu[] = { "cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us",
					   NULL };
	static const char *const pids[] = { "pids.max", NULL };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	g.fds[CGROUP_MEMORY] = fake_group(state, "memory", memory);
	g.fds[CGROUP_CPU] = fake_group(state, "cpu", cpu);
	g.fds[CGROUP_PIDS] = fake_group(state, "pids", pids);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &limits, &e), 0);
	assert_file(g.fds[CGROUP_MEMORY], "memory.limit_in_bytes", "5368709120");
	assert_file(g.fds[CGROUP_PIDS], "pids.max", "515");
	assert_file(g.fds[CGROUP_CPU], "cpu.shares", "3072");
	assert_file(g.fds[CGROUP_CPU], "cpu.cfs_quota_us", "300000");
}

/* What is not limited is not written, and does not have to be there. */
static void test_only_tasks(void **state)
{
	static const char *const files[] = { "pids.max", NULL };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	const struct cgroup_limits tasks = { .pids_max = 4096 };
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_UNIFIED] = fake_group(state, "g", files);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &tasks, &e), 0);
	assert_file(dir, "pids.max", "4096");
}

/* Programs are killed one by one, and get no swap space. */
static void test_programs(void **state)
{
	static const char *const files[] = { "memory.max", "memory.swap.max", "memory.current",
					     "memory.oom.group", NULL };
	const struct cgroup_limits memory = { .memory_max = 1 << 20 };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_UNIFIED] = fake_group(state, "g", files);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_PROGRAMS, &memory, &e), 0);
	assert_file(dir, "memory.max", "1048576");
	assert_file(dir, "memory.swap.max", "0");
	assert_file(dir, "memory.oom.group", "");
}

/* What is below them counts. */
static void test_programs_v1(void **state)
{
	static const char *const files[] = { "memory.limit_in_bytes", "memory.use_hierarchy",
					     NULL };
	const struct cgroup_limits memory = { .memory_max = 1 << 20 };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_MEMORY] = fake_group(state, "memory", files);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_PROGRAMS, &memory, &e), 0);
	assert_file(dir, "memory.limit_in_bytes", "1048576");
	assert_file(dir, "memory.use_hierarchy", "1");
}

static void test_weight(void **state)
{
	(void)state;
	assert_int_equal(pod_limits_weight(1), 1);
	assert_int_equal(pod_limits_weight(1500), 150);
	assert_int_equal(pod_limits_weight(64000), 6400);
	assert_int_equal(pod_limits_weight(101000), 10000);
}

/* What this host has not got is named, and all else is limited. */
static void test_missing(void **state)
{
	static const char *const files[] = { "pids.max", NULL };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_UNIFIED] = fake_group(state, "g", files);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &limits, &e), POD_CGROUP_E_NONE);
	assert_non_null(strstr(e.text, "memory, processors ("));
	assert_file(dir, "pids.max", "515");
	struct pod_cgroup none = POD_CGROUP_INIT;
	assert_int_equal(pod_limits_set(&none, POD_LIMITS_OF_MACHINE, &limits, &e),
			 POD_CGROUP_E_NONE);
	assert_non_null(strstr(e.text, "memory, processes, processors ("));
}

/* A value that the kernel refuses, here since the file is a directory. */
static void test_refused(void **state)
{
	static const char *const files[] = { "memory.max", "memory.oom.group", NULL };
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	int dir = g.fds[CGROUP_UNIFIED] = fake_group(state, "g", files);
	assert_int_equal(mkdirat(dir, "pids.max", 0700), 0);
	assert_int_equal(pod_limits_set(&g, POD_LIMITS_OF_MACHINE, &limits, &e), -EISDIR);
	assert_non_null(strstr(e.text, "cannot limit its processes on the host"));
}

static void test_killed(void **state)
{
	static const struct {
		enum cgroup_kind kind;
		const char *name, *text;
		bool killed;
	} cases[] = {
		{ CGROUP_UNIFIED, "memory.events", "low 0\nmax 7\noom 2\noom_kill 0\n", false },
		{ CGROUP_UNIFIED, "memory.events", "low 0\noom 2\noom_kill 3\noom_group_kill 1\n",
		  true },
		{ CGROUP_UNIFIED, "memory.events", "oom_group_kill 1\n", false },
		{ CGROUP_UNIFIED, "memory.events", "oom_kill x\n", false },
		{ CGROUP_UNIFIED, "memory.events", "", false },
		{ CGROUP_UNIFIED, "other", "oom_kill 1\n", false },
		{ CGROUP_MEMORY, "memory.oom_control", "under_oom 0\noom_kill 1\n", true },
		{ CGROUP_MEMORY, "memory.oom_control", "under_oom 1\noom_kill 0\n", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const char *const nothing[] = { NULL };
		CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
		char name[8];
		snprintf(name, sizeof(name), "%zu", i);
		int dir = g.fds[cases[i].kind] = fake_group(state, name, nothing);
		assert_int_equal(file_replace_at(dir, cases[i].name, cases[i].text,
						 strlen(cases[i].text), 0600),
				 0);
		assert_int_equal(pod_limits_killed(&g), cases[i].killed);
	}
	struct pod_cgroup none = POD_CGROUP_INIT;
	assert_false(pod_limits_killed(&none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_version_2),   fixture_test(test_version_1),
		fixture_test(test_only_tasks),  fixture_test(test_programs),
		fixture_test(test_missing),     fixture_test(test_refused),
		fixture_test(test_killed),      fixture_test(test_weight),
		fixture_test(test_programs_v1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
