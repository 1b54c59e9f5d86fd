/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static struct cgroup_mounts mounts;

static const char *path_of(enum cgroup_kind kind)
{
	return mounts.at[kind].path;
}

static void expect_none(void)
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		assert_string_equal(path_of((enum cgroup_kind)kind), "");
}

static void test_v2_only(void **state)
{
	(void)state;
	cgroup_mounts_find("22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n"
			   "29 23 0:26 / /sys/fs/cgroup rw,nosuid,relatime shared:4 master:1 - "
			   "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
			   &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/sys/fs/cgroup");
	assert_string_equal(mounts.at[CGROUP_UNIFIED].root, "/");
	for (int kind = 1; kind < CGROUP_KINDS; kind++)
		assert_string_equal(path_of((enum cgroup_kind)kind), "");
}

static void test_v1_only(void **state)
{
	(void)state;
	cgroup_mounts_find("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
			   "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
			   "rw,cpu,cpuacct\n"
			   "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
			   "34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup "
			   "rw,xattr,name=systemd\n"
			   "35 31 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
			   &mounts);
	assert_string_equal(path_of(CGROUP_CPU), "/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(path_of(CGROUP_CPUACCT), "/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(path_of(CGROUP_MEMORY), "/sys/fs/cgroup/memory");
	assert_string_equal(path_of(CGROUP_PIDS), "/sys/fs/cgroup/pids");
	assert_string_equal(path_of(CGROUP_BLKIO), "");
	assert_string_equal(path_of(CGROUP_DEVICES), "");
	assert_string_equal(path_of(CGROUP_UNIFIED), "");
}

static void test_hybrid(void **state)
{
	(void)state;
	cgroup_mounts_find("36 31 0:33 / /c/devices rw - cgroup cgroup rw,devices\n"
			   "38 31 0:35 / /c/blkio rw - cgroup cgroup rw,blkio\n"
			   "41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw",
			   &mounts);
	assert_string_equal(path_of(CGROUP_DEVICES), "/c/devices");
	assert_string_equal(path_of(CGROUP_BLKIO), "/c/blkio");
	assert_string_equal(path_of(CGROUP_UNIFIED), "/c/unified");
}

/* A mount of a part, as others make them for what they run, does not hide the whole. */
static void test_parts(void **state)
{
	(void)state;
	cgroup_mounts_find("1 2 0:3 /a /part rw - cgroup2 x rw\n"
			   "1 2 0:3 /b /other rw - cgroup2 x rw\n",
			   &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/part");
	assert_string_equal(mounts.at[CGROUP_UNIFIED].root, "/a");
	cgroup_mounts_find("1 2 0:3 /a /part rw - cgroup2 x rw\n"
			   "1 2 0:3 / /whole rw - cgroup2 x rw\n"
			   "1 2 0:3 / /again rw - cgroup2 x rw\n",
			   &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/whole");
}

static void test_escapes(void **state)
{
	(void)state;
	cgroup_mounts_find("1 2 0:3 / /a\\040b\\134\\011 rw - cgroup2 x rw\n", &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/a b\\\t");
	cgroup_mounts_find("1 2 0:3 / /a\\04 rw - cgroup2 x rw\n", &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/a\\04");
	cgroup_mounts_find("1 2 0:3 / /a\\999\\ rw - cgroup2 x rw\n", &mounts);
	assert_string_equal(path_of(CGROUP_UNIFIED), "/a\\999\\");
}

static void test_nonsense(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"cgroup2",
		"1 2 0:3 / /x rw",
		"1 2 0:3 / /x rw -",
		"1 2 0:3 / /x rw - ",
		"1 2 0:3 / x rw - cgroup2 x rw\n",
		"1 2 0:3  /x rw - cgroup2 x rw\n",
		"1 2 0:3 / /x rw - cgroup2x x rw\n",
		"1 2 0:3 / /x rw - cgroup x rw,memoryx,name=memory\n",
		"1 2 0:3 / /x rw - cgroup\n",
		"- - - - - - - - cgroup2 cgroup2\n",
		" - cgroup2 \n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cgroup_mounts_find(texts[i], &mounts);
		expect_none();
	}
}

/* A path of @len bytes. */
static const char *line_with(size_t len)
{
	static char text[2 * CGROUP_PATH_MAX];
	char path[CGROUP_PATH_MAX + 2];
	memset(path, '/', len);
	path[len] = '\0';
	snprintf(text, sizeof(text), "1 2 0:3 / %s rw - cgroup2 x rw\n", path);
	return text;
}

static void test_longest(void **state)
{
	(void)state;
	cgroup_mounts_find(line_with(CGROUP_PATH_MAX - 1), &mounts);
	assert_int_equal(strlen(path_of(CGROUP_UNIFIED)), CGROUP_PATH_MAX - 1);
	cgroup_mounts_find(line_with(CGROUP_PATH_MAX), &mounts);
	expect_none();
}

static const char *own(const char *root, const char *text)
{
	static char path[64];
	struct cgroup_mount m = { .path = "/c" };
	snprintf(m.root, sizeof(m.root), "%s", root);
	int r = cgroup_mounts_own(&m, text, path, sizeof(path));
	return r == -ENOENT ? "none" : r == -ENAMETOOLONG ? "long" : path;
}

static void test_own(void **state)
{
	(void)state;
	struct cgroup_mount nowhere = { .path = "" };
	char path[8];
	assert_string_equal(own("/", "9:name=systemd:/x\n8:pids:/y\n0::/a/b.scope\n"),
			    "/c/a/b.scope");
	assert_string_equal(own("/", "0::/\n"), "/c/");
	assert_string_equal(own("/a", "0::/a/b"), "/c/b");
	assert_string_equal(own("/a", "0::/a\n"), "/c");
	assert_string_equal(own("/a", "0::/ab\n"), "none");
	assert_string_equal(own("/a", "0::/\n"), "none");
	assert_string_equal(own("/", "0::/../a\n"), "none");
	assert_string_equal(own("/", "0::a\n"), "none");
	assert_string_equal(own("/", "10::/a\n0:"), "none");
	assert_string_equal(own("/", ""), "none");
	assert_string_equal(own("/", "0::/0123456789012345678901234567890123456789012345678901234"
				     "5678901"),
			    "long");
	assert_int_equal(cgroup_mounts_own(&nowhere, "0::/", path, sizeof(path)), -ENOENT);
}

static void test_own_longest(void **state)
{
	(void)state;
	static char text[2 * CGROUP_PATH_MAX], path[4 * CGROUP_PATH_MAX];
	const struct cgroup_mount m = { "/c", "/" };
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "0::/", 4);
	assert_int_equal(cgroup_mounts_own(&m, text, path, sizeof(path)), -ENAMETOOLONG);
	text[3 + CGROUP_PATH_MAX - 1] = '\0';
	assert_int_equal(cgroup_mounts_own(&m, text, path, sizeof(path)), 0);
	assert_int_equal(strlen(path), CGROUP_PATH_MAX + 1);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cgroup_kind_name(CGROUP_UNIFIED), "unified");
	assert_string_equal(cgroup_kind_name(CGROUP_DEVICES), "devices");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_v2_only),     fixture_test(test_v1_only),
		fixture_test(test_hybrid),      fixture_test(test_parts),
		fixture_test(test_escapes),     fixture_test(test_nonsense),
		fixture_test(test_longest),     fixture_test(test_own),
		fixture_test(test_own_longest), fixture_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
