/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cgroup/cgroup_file.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void put(void **state, const char *name, const char *text)
{
	fixture_write(state, name, text, strlen(text));
}

static void test_file(void **state)
{
	char text[4];
	int dir = fixture_dir(state);
	assert_int_equal(cgroup_file_write(dir, "new", "1"), -ENOENT);
	put(state, "some", "12345\n");
	assert_int_equal(cgroup_file_read(dir, "some", text, sizeof(text)), 0);
	assert_string_equal(text, "123"); /* as much as there is room for */
	assert_int_equal(cgroup_file_write(dir, "some", "9"), 0);
	assert_int_equal(cgroup_file_number(dir, "some"), 92345);
	assert_int_equal(cgroup_file_read(dir, "other", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
}

static void test_number(void **state)
{
	static const struct {
		const char *text;
		int64_t n;
	} cases[] = {
		{ "0\n", 0 },
		{ "7", 7 },
		{ "150000 100000\n", 150000 },
		{ "9223372036854775807\n", INT64_MAX },
		{ "9223372036854775808\n", -1 },
		{ "111111111111111111111111111\n", -1 },
		{ "max\n", -1 },
		{ "-1\n", -1 },
		{ "", -1 },
	};
	int dir = fixture_dir(state);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[2] = { (char)('a' + i), '\0' };
		put(state, name, cases[i].text);
		assert_int_equal(cgroup_file_number(dir, name), cases[i].n);
	}
	assert_int_equal(cgroup_file_number(dir, "none"), -1);
}

static void test_text(void **state)
{
	(void)state;
	const char *text = "low 1\nkill 2\noom_kill 3\noom 4\n";
	assert_int_equal(cgroup_text_number(text, "low"), 1);
	assert_int_equal(cgroup_text_number(text, "kill"), 2);
	assert_int_equal(cgroup_text_number(text, "oom"), 4);
	assert_int_equal(cgroup_text_number(text, "oo"), -1);
	assert_int_equal(cgroup_text_number("", "low"), -1);
	assert_int_equal(cgroup_text_sum("8:0 r=1 w=2\n8:1 r=3 w=4\n", " r="), 4);
	assert_int_equal(cgroup_text_sum("8:0 r=1\n", " w="), 0);
	assert_int_equal(cgroup_text_sum("8:0 w=x\n", " w="), -1);
	assert_int_equal(cgroup_text_sum("8:0 w=9223372036854775807\n8:1 w=1\n", " w="), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_file),
		fixture_test(test_number),
		fixture_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
