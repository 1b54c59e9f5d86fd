/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cgroup/cgroup_file.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
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

static void add(void *ctx, int64_t number)
{
	int64_t *sum = ctx;
	sum[0] += number;
	sum[1]++;
}

/* Lines across the pieces in which a long file is read; what is no number is passed over. */
static void test_each(void **state)
{
	int64_t sum[2] = { 0 }, want = 0;
	cleanup_buf struct buf text;
	int dir = fixture_dir(state);
	buf_init(&text, 1 << 20);
	for (int64_t i = 0; i < 5000; i++) {
		assert_int_equal(buf_printf(&text, "%lld\n", (long long)(i * 37)), 0);
		want += i * 37;
	}
	assert_int_equal(buf_printf(&text, "x\n\n-1\n"), 0);
	fixture_write(state, "cgroup.procs", buf_data(&text), buf_len(&text));
	assert_int_equal(cgroup_file_each(dir, "cgroup.procs", add, sum), 0);
	assert_int_equal(sum[0], want);
	assert_int_equal(sum[1], 5000);
	assert_int_equal(cgroup_file_each(dir, "missing", add, sum), -ENOENT);
	buf_deinit(&text);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_append(&text, "1", 1), 0);
	fixture_write(state, "long", buf_data(&text), buf_len(&text));
	assert_int_equal(cgroup_file_each(dir, "long", add, sum), -EBADMSG);
	assert_int_equal(sum[1], 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_file),
		fixture_test(test_number),
		fixture_test(test_text),
		fixture_test(test_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
