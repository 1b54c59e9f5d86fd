/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On directories and files that stand for the kernel's: what is written where, and what is read.
 * With the real ones: guest-agent/app/test_cgroup_host.c and stage1/pod/test_pod_cgroup.c.
 */
#include "lib/cgroup/cgroup_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

static const struct cgroup_limits none = { 0 };
static const struct cgroup_limits some = { 1 << 20, 1500, 7, 9 };
static struct err err;

static const char *const v2_files[] = { "memory.max",     "memory.swap.max", "memory.high",
					"memory.current", "cpu.max",         "cpu.weight",
					"pids.max" };
static const char *const v1_files[] = { "memory.limit_in_bytes",
					"memory.memsw.limit_in_bytes",
					"memory.usage_in_bytes",
					"cpu.cfs_period_us",
					"cpu.cfs_quota_us",
					"cpu.shares",
					"pids.max" };

static void put(void **state, const char *name, const char *text)
{
	assert_int_equal(file_replace_at(fixture_dir(state), name, text, strlen(text), 0600), 0);
}

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

/* One directory with all files, empty. */
static struct cgroup_controllers group(void **state, bool is_v1)
{
	const struct cgroup_controller all = { fixture_dir(state), is_v1 };
	for (size_t i = 0; i < ARRAY_SIZE(v2_files); i++)
		put(state, is_v1 ? v1_files[i] : v2_files[i], "");
	return CGROUP_CONTROLLERS_IN(all);
}

static void assert_contents(void **state, const char *const *files, const char *const *texts)
{
	for (size_t i = 0; i < ARRAY_SIZE(v2_files); i++)
		if (texts[i])
			assert_string_equal(content(state, files[i]), texts[i]);
}

static void test_version_2(void **state)
{
	static const char *const set[] = { "1048576", "0", "", NULL, "150000 100000", "7", "9" };
	static const char *const unset[] = { "max", "max", "", NULL, "max", "100", "max" };
	struct cgroup_controllers c = group(state, false);
	assert_int_equal(cgroup_limits_change(&c, &none, &some, &err), 0);
	assert_contents(state, v2_files, set);
	c = group(state, false);
	assert_int_equal(cgroup_limits_change(&c, &some, &none, &err), 0);
	assert_contents(state, v2_files, unset);
}

static void test_version_1(void **state)
{
	static const char *const set[] = {
		"1048576", "1048576", NULL, "100000", "150000", "71", "9"
	};
	static const char *const unset[] = { "-1", "-1", NULL, "100000", "-1", "1024", "max" };
	struct cgroup_controllers c = group(state, true);
	assert_int_equal(cgroup_limits_change(&c, &none, &some, &err), 0);
	assert_contents(state, v1_files, set);
	c = group(state, true);
	assert_int_equal(cgroup_limits_change(&c, &some, &none, &err), 0);
	assert_contents(state, v1_files, unset);
}

/* What may swap is not limited there; what stays the same is not written. */
static void test_not_written(void **state)
{
	struct cgroup_controllers c = group(state, false);
	c.may_swap = true;
	assert_int_equal(cgroup_limits_change(&c, &none, &some, &err), 0);
	assert_string_equal(content(state, "memory.max"), "1048576");
	assert_string_equal(content(state, "memory.swap.max"), "");
	c = group(state, true);
	c.may_swap = true;
	assert_int_equal(cgroup_limits_change(&c, &none, &some, &err), 0);
	assert_string_equal(content(state, "memory.memsw.limit_in_bytes"), "");
	c = group(state, true);
	assert_int_equal(cgroup_limits_change(&c, &some, &some, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(v1_files); i++)
		assert_string_equal(content(state, v1_files[i]), "");
	c = CGROUP_CONTROLLERS_NONE;
	assert_int_equal(cgroup_limits_change(&c, &some, &some, &err), 0);
}

/* The kernel takes no quota below a millisecond, no fewer shares than two. */
static void test_smallest(void **state)
{
	const struct cgroup_limits least = { .cpu_millis = 1, .cpu_weight = 1 };
	struct cgroup_controllers c = group(state, false);
	assert_int_equal(cgroup_limits_change(&c, &none, &least, &err), 0);
	assert_string_equal(content(state, "cpu.max"), "1000 100000");
	assert_string_equal(content(state, "cpu.weight"), "1");
	c = group(state, true);
	assert_int_equal(cgroup_limits_change(&c, &none, &least, &err), 0);
	assert_string_equal(content(state, "cpu.cfs_quota_us"), "1000");
	assert_string_equal(content(state, "cpu.shares"), "10");
}

/* The kernel is asked to take back what it can, and nothing is killed for the rest. */
static void test_below_use(void **state)
{
	const struct cgroup_limits from = { 1 << 20, 0, 0, 0 }, less = { 4095, 500, 0, 0 };
	struct cgroup_controllers c = group(state, false);
	put(state, "memory.current", "4096\n");
	assert_int_equal(cgroup_limits_change(&c, &from, &less, &err), -EBUSY);
	assert_string_equal(err.text,
			    "cannot limit its memory to 4095 bytes: it uses 4096 that the kernel "
			    "cannot take back (let it free some, or stop it first)");
	assert_string_equal(content(state, "memory.high"), "max5"); /* first that limit */
	assert_string_equal(content(state, "memory.max"), "1048576");
	assert_string_equal(content(state, "cpu.max"), "max");
	/* What fits needs no room. */
	c = group(state, false);
	put(state, "memory.current", "4095\n");
	assert_int_equal(cgroup_limits_change(&c, &from, &less, &err), 0);
	assert_string_equal(content(state, "memory.high"), "");
	assert_string_equal(content(state, "memory.max"), "4095");
}

/* In version 1 a limit of memory is set before that of memory and swap to lower it, else behind. */
static void test_order(void **state)
{
	const struct cgroup_limits from = { 1 << 20, 0, 0, 0 }, more = { 1 << 21, 0, 0, 0 },
				   less = { 1 << 19, 0, 0, 0 };
	const char *together = "memory.memsw.limit_in_bytes";
	struct cgroup_controllers c = group(state, true);
	assert_int_equal(unlinkat(fixture_dir(state), together, 0), 0);
	assert_int_equal(mkdirat(fixture_dir(state), together, 0755), 0);
	assert_int_equal(cgroup_limits_change(&c, &from, &more, &err), -EISDIR);
	assert_string_equal(content(state, "memory.limit_in_bytes"), "1048576"); /* as it was */
	assert_int_equal(cgroup_limits_change(&c, &from, &less, &err), -EISDIR);
	assert_non_null(strstr(err.text, "cannot set memory.memsw.limit_in_bytes to 524288: "));
	/* Swap space that is not counted is not limited. */
	assert_int_equal(unlinkat(fixture_dir(state), together, AT_REMOVEDIR), 0);
	put(state, "memory.limit_in_bytes", "");
	assert_int_equal(cgroup_limits_change(&c, &from, &less, &err), 0);
	assert_string_equal(content(state, "memory.limit_in_bytes"), "524288");
}

/* A limit that nothing holds is refused, and those before it are as they were. */
static void test_missing(void **state)
{
	const struct cgroup_limits from = { .cpu_millis = 100 }, to = { 0, 200, 0, 1 };
	struct cgroup_controllers c = group(state, false);
	assert_int_equal(unlinkat(fixture_dir(state), "pids.max", 0), 0);
	assert_int_equal(cgroup_limits_change(&c, &from, &to, &err), -EOPNOTSUPP);
	assert_string_equal(err.text,
			    "the kernel cannot limit pids.max here (leave the limit away)");
	assert_string_equal(content(state, "cpu.max"), "10000 100000");
	c = CGROUP_CONTROLLERS_NONE;
	assert_int_equal(cgroup_limits_change(&c, &none, &some, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "cannot limit memory.max here"));
}

static void test_weight_of_shares(void **state)
{
	static const int64_t cases[][2] = { { 2, 1 },          { 20, 1 },        { 512, 50 },
					    { 1024, 100 },     { 2048, 200 },    { 102400, 10000 },
					    { 102401, 10000 }, { 262144, 10000 } };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cgroup_weight_of_shares(cases[i][0]), cases[i][1]);
}

static void assert_read(const struct cgroup_controllers *c, struct cgroup_limits want)
{
	struct cgroup_limits got;
	cgroup_limits_read(c, &got);
	assert_memory_equal(&got, &want, sizeof(got));
}

static void test_read_version_2(void **state)
{
	struct cgroup_controllers c = group(state, false);
	assert_read(&c, none);
	put(state, "memory.max", "1048576\n");
	put(state, "cpu.max", "150000 100000\n");
	put(state, "cpu.weight", "7\n");
	put(state, "pids.max", "9\n");
	assert_read(&c, some);
	put(state, "memory.max", "max\n");
	put(state, "cpu.max", "max 100000\n");
	put(state, "cpu.weight", "100\n");
	put(state, "pids.max", "max\n");
	assert_read(&c, none);
	put(state, "cpu.max", "25000 50000\n"); /* somebody else's period */
	assert_read(&c, (struct cgroup_limits){ .cpu_millis = 500 });
	static const char *const odd[] = { "1 0\n", "5\n", "5 x\n", "9223372036854775807 1\n" };
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		put(state, "cpu.max", odd[i]);
		assert_read(&c, none);
	}
}

static void test_read_version_1(void **state)
{
	struct cgroup_controllers c = group(state, true);
	assert_read(&c, none);
	put(state, "memory.limit_in_bytes", "1048576\n");
	put(state, "cpu.cfs_quota_us", "150000\n");
	put(state, "cpu.cfs_period_us", "100000\n");
	put(state, "cpu.shares", "71\n");
	put(state, "pids.max", "9\n");
	assert_read(&c, some);
	put(state, "memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
	put(state, "cpu.cfs_quota_us", "-1\n");
	put(state, "cpu.shares", "1024\n");
	put(state, "pids.max", "max\n");
	assert_read(&c, none);
	c = CGROUP_CONTROLLERS_NONE;
	assert_read(&c, none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_version_2),      fixture_test(test_version_1),
		fixture_test(test_not_written),    fixture_test(test_smallest),
		fixture_test(test_below_use),      fixture_test(test_order),
		fixture_test(test_missing),        fixture_test(test_weight_of_shares),
		fixture_test(test_read_version_2), fixture_test(test_read_version_1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
