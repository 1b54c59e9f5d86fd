/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_parent.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void test_places(void **state)
{
	static const char *const cases[][2] = {
		{ "/", "" },
		{ "///", "" },
		{ "/a", "a" },
		{ "/a/b.c/ d", "a/b.c/ d" },
		{ "//a//b/", "a/b" },
		{ "/.../..a", ".../..a" },
		{ "/\xc3\xa4", "\xc3\xa4" },
		{ "/a-b.slice", "a-b.slice" },
		{ "-.slice", "" },
		{ "a.slice", "a.slice" },
		{ "a-b.slice", "a.slice/a-b.slice" },
		{ "kubepods-burstable-pod1_2.slice",
		  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice" },
		{ "a.b-c.slice", "a.b.slice/a.b-c.slice" },
		{ "a-b.slice/c.scope", "a.slice/a-b.slice/c.scope" },
		{ "a.slice/", "a.slice" },
		{ "-.slice/a//b/", "a/b" },
		{ "/+a", "+a" },
		{ "+/a/b/", "a/b/" },
		{ "+a-b.slice", "a.slice/a-b.slice/" },
		{ "+a.slice/x-1.scope", "a.slice/x-1.scope/" },
	};
	char path[CGROUP_PATH_MAX];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(cgroup_parent_expand(cases[i][0], path), 0);
		assert_string_equal(path, cases[i][1]);
		assert_int_equal(cgroup_parent_is_own(path), cases[i][0][0] == '+');
	}
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"",         "a",          "a/b",        ".slice",     "-a.slice",
		"a-.slice", "a--b.slice", "--.slice",   "/a/../b",    "/..",
		"/.",       "/a/.",       "/a\nb",      "/a\x1b[1m",  "a/b.slice",
		"a.scope",  "/\xff",      "a\nb.slice", "+",          "+/",
		"++/a",     "+a",         "+-.slice",   "a.slice/..", "a.slice/./b",
	};
	char path[CGROUP_PATH_MAX];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cgroup_parent_expand(cases[i], path), -EINVAL);
}

/* A name of a directory, a path, and what a slice becomes: as long as can be, and one byte more. */
static void test_longest(void **state)
{
	char path[CGROUP_PATH_MAX], name[CGROUP_PATH_MAX + 1];
	(void)state;
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(cgroup_parent_expand(name, path), 0);
	assert_string_equal(path, name + 1);
	name[NAME_MAX + 1] = 'a';
	name[NAME_MAX + 2] = '\0';
	assert_int_equal(cgroup_parent_expand(name, path), -EINVAL);

	for (size_t i = 0; i < sizeof(name); i += 2)
		memcpy(name + i, "/a", MIN(sizeof(name) - i, (size_t)2));
	name[CGROUP_PATH_MAX] = '\0';
	assert_int_equal(cgroup_parent_expand(name, path), -ENAMETOOLONG);
	name[CGROUP_PATH_MAX - 1] = '\0';
	assert_int_equal(cgroup_parent_expand(name, path), 0);
	memcpy(name, "+/a", 3); /* what is the pod's own has a slash more */
	assert_int_equal(cgroup_parent_expand(name, path), 0);
	memcpy(name, "/a/", 3);

	/* a.slice/a-a.slice/a-a-a.slice...: n parts take n * (n + 7) bytes */
	for (size_t i = 0; i < 40; i++)
		name[i] = i % 2 ? '-' : 'a';
	strcpy(name + 2 * 19 - 1, ".slice");
	assert_int_equal(cgroup_parent_expand(name, path), 0);
	assert_int_equal(strlen(path), 19 * 26 - 1);
	name[2 * 19 - 1] = '-';
	strcpy(name + 2 * 20 - 1, ".slice");
	assert_int_equal(cgroup_parent_expand(name, path), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_places),
		fixture_test(test_refused),
		fixture_test(test_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
