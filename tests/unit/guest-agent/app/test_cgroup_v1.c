/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On directories and files that stand for the kernel's: what is written where, and what is read.
 * With the real ones: test_cgroup_host.c.
 */
#include "guest-agent/app/cgroup_v1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "lib/base/err.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static struct fault fault;

/* Group 1 below these hierarchies, with the files that the kernel would make. */
static void make_groups(void **state, const char *const *files)
{
	char name[64];
	for (; *files; files++) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*files, "/"), *files);
		mkdirat(fixture_dir(state), name, 0755);
		snprintf(name, sizeof(name), "%.*s/1", (int)strcspn(*files, "/"), *files);
		mkdirat(fixture_dir(state), name, 0755);
		fixture_write(state, *files, "", 0);
	}
}

static const char *const all_files[] = { "memory/1/memory.limit_in_bytes",
					 "memory/1/memory.memsw.limit_in_bytes",
					 "memory/1/tasks",
					 "cpu/1/cpu.shares",
					 "cpu/1/cpu.cfs_quota_us",
					 "cpu/1/cpu.cfs_period_us",
					 "cpu/1/tasks",
					 "cpuacct/1/tasks",
					 "blkio/1/tasks",
					 "pids/1/pids.max",
					 "pids/1/pids.current",
					 "pids/1/tasks",
					 NULL };

static const char *content(void **state, const char *name)
{
	static char text[64];
	size_t len = 0;
	cleanup_fd int fd = openat(fixture_dir(state), name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

static void set(void **state, const char *name, const char *text)
{
	fixture_write(state, name, text, strlen(text));
}

static bool exists(void **state, const char *name)
{
	return faccessat(fixture_dir(state), name, F_OK, 0) == 0;
}

static int make(void **state, struct cgroup_limits l)
{
	return cgroup_v1_make(fixture_path(state), 1, &l, &fault);
}

static void test_limits(void **state)
{
	make_groups(state, all_files);
	assert_int_equal(make(state, (struct cgroup_limits){ 1 << 20, 1500, 10000, 7 }), 0);
	assert_string_equal(content(state, all_files[0]), "1048576");
	assert_string_equal(content(state, all_files[1]), "1048576");
	assert_string_equal(content(state, "cpu/1/cpu.shares"), "102400");
	assert_string_equal(content(state, "cpu/1/cpu.cfs_quota_us"), "150000");
	assert_string_equal(content(state, "cpu/1/cpu.cfs_period_us"), "100000");
	assert_string_equal(content(state, "pids/1/pids.max"), "7");
}

static void test_no_limits(void **state)
{
	make_groups(state, all_files);
	assert_int_equal(make(state, (struct cgroup_limits){ 0 }), 0);
	for (size_t i = 0; all_files[i]; i++)
		assert_string_equal(content(state, all_files[i]), "");
}

static int change(void **state, struct cgroup_limits from, struct cgroup_limits to)
{
	for (size_t i = 0; all_files[i]; i++) {
		unlinkat(fixture_dir(state), all_files[i], 0);
		set(state, all_files[i], "");
	}
	return cgroup_v1_change(fixture_path(state), 1, &from, &to, &fault);
}

static void test_change(void **state)
{
	const struct cgroup_limits none = { 0 }, some = { 1 << 20, 1500, 10000, 7 };
	make_groups(state, all_files);
	assert_int_equal(change(state, some, none), 0);
	assert_string_equal(content(state, all_files[0]), "-1");
	assert_string_equal(content(state, all_files[1]), "-1");
	assert_string_equal(content(state, "cpu/1/cpu.shares"), "1024");
	assert_string_equal(content(state, "cpu/1/cpu.cfs_quota_us"), "-1");
	assert_string_equal(content(state, "pids/1/pids.max"), "max");
	assert_int_equal(change(state, some, some), 0);
	for (size_t i = 0; all_files[i]; i++)
		assert_string_equal(content(state, all_files[i]), "");
}

/* A limit that nothing holds is refused, and no group is left; without it they are made. */
static void test_missing(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "cpu", 0755), 0);
	assert_true(cgroup_v1_is_there(fixture_path(state)));
	assert_int_equal(make(state, (struct cgroup_limits){ 0 }), 0);
	assert_true(exists(state, "cpu/1"));
	assert_false(exists(state, "memory"));
	assert_int_equal(make(state, (struct cgroup_limits){ .memory_max = 1 }), FAULT_SET);
	assert_string_equal(fault.text, "the kernel cannot limit memory.limit_in_bytes here "
					"(leave the limit away)");
	assert_false(exists(state, "cpu/1"));
	assert_int_equal(make(state, (struct cgroup_limits){ .pids_max = 1 }), FAULT_SET);
	assert_int_equal(make(state, (struct cgroup_limits){ .cpu_weight = 1 }), FAULT_SET);
	assert_int_equal(make(state, (struct cgroup_limits){ .cpu_millis = 1 }), FAULT_SET);
}

/* "cpu" and "cpuacct" are one hierarchy on many hosts. */
static void test_same_hierarchy(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "cpu", 0755), 0);
	assert_int_equal(symlinkat("cpu", fixture_dir(state), "cpuacct"), 0);
	assert_int_equal(make(state, (struct cgroup_limits){ 0 }), 0);
	assert_true(exists(state, "cpuacct/1"));
	cgroup_v1_remove(fixture_path(state), 1);
	assert_false(exists(state, "cpu/1"));
	cgroup_v1_remove(fixture_path(state), 1);
}

static void test_enter(void **state)
{
	make_groups(state, all_files);
	set(state, "pids/1/pids.max", "2\n");
	set(state, "pids/1/pids.current", "2\n");
	assert_int_equal(cgroup_v1_enter(fixture_path(state), 1, &fault), 0);
	assert_string_equal(content(state, "memory/1/tasks"), "0");
	assert_string_equal(content(state, "cpu/1/tasks"), "0");
	assert_string_equal(content(state, "cpuacct/1/tasks"), "0");
	assert_string_equal(content(state, "pids/1/tasks"), "0");
	assert_string_equal(content(state, "blkio/1/tasks"), "0");
	set(state, "pids/1/pids.current", "3\n");
	assert_int_equal(cgroup_v1_enter(fixture_path(state), 1, &fault), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_LIMIT);
	assert_string_equal(fault.text, "the app has as many processes as it may have");
	set(state, "pids/1/pids.max", "max\n");
	assert_int_equal(cgroup_v1_enter(fixture_path(state), 1, &fault), 0);
}

/* Nothing runs outside of a group that it should be in. */
static void test_enter_nothing(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "cpu", 0755), 0);
	assert_int_equal(cgroup_v1_enter(fixture_path(state), 1, &fault), FAULT_SET);
	assert_string_equal(fault.text, "cannot enter control group 1 of \"cpu\": "
					"No such file or directory");
}

static bool oom_kill(void **state, const char *text)
{
	set(state, "memory/1/memory.oom_control", text);
	return cgroup_v1_had_oom_kill(fixture_path(state), 1);
}

static void test_oom_kill(void **state)
{
	make_groups(state, all_files);
	assert_false(cgroup_v1_had_oom_kill(fixture_path(state), 1));
	assert_false(oom_kill(state, "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n"));
	assert_true(oom_kill(state, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"));
	assert_false(oom_kill(state, "oom_kill_disable 1\nunder_oom 1\n"));
	assert_false(oom_kill(state, "oom_kill -1\n"));
	assert_false(oom_kill(state, ""));
}

static struct agent_app_stats stats(void **state)
{
	struct agent_app_stats m;
	const struct cgroup_dir dir = { fixture_path(state), true };
	cgroup_stats(&dir, 1, &m);
	return m;
}

/* Each from the hierarchy that has it. */
static void test_stats(void **state)
{
	make_groups(state, all_files);
	set(state, "cpuacct/1/cpuacct.usage", "12999\n");
	set(state, "cpu/1/cpu.stat", "nr_periods 4\nnr_throttled 9\nthrottled_time 3000\n");
	set(state, "memory/1/memory.usage_in_bytes", "4096\n");
	set(state, "memory/1/memory.limit_in_bytes", "16384\n");
	set(state, "pids/1/pids.current", "1\n");
	set(state, "blkio/1/blkio.throttle.io_service_bytes", "8:16 Read 10\n");
	struct agent_app_stats m = stats(state);
	assert_int_equal(m.cpu_usec, 12);
	assert_int_equal(m.throttled_usec, 3);
	assert_int_equal(m.memory_bytes, 4096);
	assert_int_equal(m.memory_limit, 16384);
	assert_int_equal(m.pids, 1);
	assert_int_equal(m.io_read_bytes, 10);
}

/* Version 1 through the interface of both. */
static void test_as_cgroup(void **state)
{
	struct err e = ERR_INIT;
	struct cgroup_dir dir = { NULL, false };
	const struct cgroup_limits none = { 0 };
	assert_int_equal(cgroup_adopt(fixture_path(state), &dir, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no control groups in"));
	assert_int_equal(mkdirat(fixture_dir(state), "pids", 0755), 0);
	assert_int_equal(cgroup_adopt(fixture_path(state), &dir, &e), 0);
	assert_true(dir.is_v1);
	struct cgroup group = CGROUP_INIT;
	assert_int_equal(cgroup_make(&dir, 3, &none, &group, &fault), 0);
	assert_int_equal(group.fd, -EBADF);
	assert_true(exists(state, "pids/3"));
	assert_int_equal(cgroup_enter(&group, &fault), FAULT_SET); /* no tasks */
	assert_int_equal(cgroup_open(&dir, 3, &group), 0);
	assert_string_equal(group.v1_dir, fixture_path(state));
	assert_false(cgroup_had_oom_kill(&dir, 3));
	cgroup_close(&group);
	cgroup_remove(&dir, 3);
	assert_false(exists(state, "pids/3"));
}

static void test_adopt_v2(void **state)
{
	char path[CGROUP_V1_DIR_MAX + 2];
	struct err e = ERR_INIT;
	struct cgroup_dir dir = { NULL, true };
	assert_int_equal(mkdirat(fixture_dir(state), "memory", 0755), 0);
	set(state, "cgroup.controllers", "");
	set(state, "cgroup.subtree_control", "");
	assert_int_equal(cgroup_adopt(fixture_path(state), &dir, &e), 0);
	assert_false(dir.is_v1);
	assert_string_equal(content(state, "cgroup.subtree_control"), "+memory +pids +cpu +io");
	set(state, "cgroup.type", "domain\n");
	set(state, "cgroup.procs", "");
	assert_int_equal(cgroup_adopt(fixture_path(state), &dir, &e), 0);
	set(state, "cgroup.procs", "1\n");
	assert_int_equal(cgroup_adopt(fixture_path(state), &dir, &e), -EBUSY);
	assert_non_null(strstr(e.text, "a process is in it (put it in a child)"));
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(cgroup_adopt(path, &dir, &e), -ENAMETOOLONG);
	path[CGROUP_V1_DIR_MAX] = '\0';
	assert_int_equal(cgroup_adopt(path, &dir, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_limits),    fixture_test(test_no_limits),
		fixture_test(test_missing),   fixture_test(test_same_hierarchy),
		fixture_test(test_enter),     fixture_test(test_enter_nothing),
		fixture_test(test_oom_kill),  fixture_test(test_stats),
		fixture_test(test_as_cgroup), fixture_test(test_adopt_v2),
		fixture_test(test_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
