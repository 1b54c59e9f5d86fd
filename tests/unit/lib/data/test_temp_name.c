/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/temp_name.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/support/fixture.h"

static void test_make(void **state)
{
	(void)state;
	char a[TEMP_NAME_LEN + 1], b[TEMP_NAME_LEN + 1];
	assert_int_equal(temp_name_make(a), 0);
	assert_int_equal(temp_name_make(b), 0);
	assert_int_equal(strlen(a), TEMP_NAME_LEN);
	assert_true(str_starts(a, TEMP_NAME_PREFIX));
	assert_string_not_equal(a, b);
}

static void test_split(void **state)
{
	(void)state;
	static const struct {
		const char *path, *dir, *name;
	} cases[] = {
		{ "a", ".", "a" },       { "/a", "/", "a" },
		{ "a/b", "a", "b" },     { "/a/b/...", "/a/b", "..." },
		{ "../.a", "..", ".a" },
	};
	char dir[PATH_MAX], name[NAME_MAX + 1];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(temp_name_split(cases[i].path, dir, sizeof(dir), name), 0);
		assert_string_equal(dir, cases[i].dir);
		assert_string_equal(name, cases[i].name);
	}
	static const char *const none[] = { "", "/", "a/", ".", "..", "a/.", "/.." };
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(temp_name_split(none[i], dir, sizeof(dir), name), -EISDIR);
}

static void test_limits(void **state)
{
	(void)state;
	char path[NAME_MAX + 4], dir[3], name[NAME_MAX + 1];
	memset(path, 'n', sizeof(path));
	path[NAME_MAX] = '\0';
	assert_int_equal(temp_name_split(path, dir, sizeof(dir), name), 0);
	path[NAME_MAX] = 'n';
	path[NAME_MAX + 1] = '\0';
	assert_int_equal(temp_name_split(path, dir, sizeof(dir), name), -ENAMETOOLONG);
	assert_int_equal(temp_name_split("d/", dir, sizeof(dir), name), -EISDIR);
	assert_int_equal(temp_name_split("d/e/f", dir, sizeof(dir), name), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_make),
		fixture_test(test_split),
		fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
