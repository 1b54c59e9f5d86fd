/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/table.h"

#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static int format(const struct table *t, struct buf *out)
{
	buf_init(out, 4096);
	int r = table_format(t, out);
	return r < 0 ? r : buf_append(out, "", 1);
}

static void test_columns(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 3);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "A", "LONG HEADER", "LAST" }), 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "1234567", "x", "12345678" }), 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "", "", "" }), 0);
	assert_int_equal(format(&t, &out), 0);
	assert_string_equal(buf_data(&out), "A\tLONG HEADER\tLAST\n"
					    "1234567\tx\t\t12345678\n"
					    "\t\t\t\n");
}

static void test_tab_stop(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 2);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "12345678", "x" }), 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "1234567", "y" }), 0);
	assert_int_equal(format(&t, &out), 0);
	assert_string_equal(buf_data(&out), "12345678\tx\n1234567\t\ty\n");
}

static void test_hostile_cells(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 2);
	assert_int_equal(
		table_add_row(
			&t, (const char *const[]){ "a\tb\nc", "\x1b[1m\xc3\xa9\xe2\x80\xae\xff" }),
		0);
	assert_int_equal(format(&t, &out), 0);
	assert_string_equal(buf_data(&out), "a?b?c\t?[1m\xc3\xa9????\n");
}

/* Columns are of characters, and none is cut in two. */
static void test_characters(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 2);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f"
								  "1234",
								  "x" }),
			 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "12", "y" }), 0);
	assert_int_equal(format(&t, &out), 0);
	assert_string_equal(buf_data(&out), "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f"
					    "1234\tx\n12\t\ty\n");
	buf_deinit(&out);
	table_deinit(&t);
	table_init(&t, 1);
	buf_init(&out, 1000);
	cleanup_free char *wide = calloc(2 * 100 + 1, 1);
	for (size_t i = 0; i < 100; i++)
		memcpy(wide + 2 * i, "\xc3\xa4", 2);
	assert_int_equal(table_add_row(&t, (const char *const[]){ wide }), 0);
	assert_int_equal(table_format_width(&t, 50, &out), 0);
	assert_int_equal(buf_len(&out), 2 * 49 + 2); /* and the mark, and the end */
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_true(str_is_utf8(buf_data(&out)));
}

/* Lines end at the width: the widest columns are cut first, and none below its minimum. */
static void test_width(void **state)
{
	static const struct {
		size_t width;
		const char *want;
	} cases[] = {
		{ 24, "ID  WORD        LAST\n12  0123456789  abcdef\n3\n" },
		{ 22, "ID  WORD        LAST\n12  0123456789  abcdef\n3\n" },
		{ 21, "ID  WORD       LAST\n12  01234567~  abcdef\n3\n" },
		{ 18, "ID  WORD    LAST\n12  01234~  abcdef\n3\n" },
		{ 16, "ID  WORD   LAST\n12  0123~  abcd~\n3\n" },
		{ 1, "ID  WORD  LAST\n12  012~  abc~\n3\n" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(table_deinit) struct table t;
		cleanup_buf struct buf out;
		buf_init(&out, 4096);
		table_init(&t, 3);
		assert_int_equal(table_add_row(&t, (const char *const[]){ "ID", "WORD", "LAST" }),
				 0);
		assert_int_equal(
			table_add_row(&t, (const char *const[]){ "12", "0123456789", "abcdef" }),
			0);
		assert_int_equal(table_add_row(&t, (const char *const[]){ "3", "", "" }), 0);
		assert_int_equal(table_format_width(&t, cases[i].width, &out), 0);
		assert_int_equal(buf_append(&out, "", 1), 0);
		assert_string_equal(buf_data(&out), cases[i].want);
	}
}

static void test_limits(void **state)
{
	(void)state;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 1);
	t.cells.max = 2;
	assert_int_equal(table_add_row(&t, (const char *const[]){ "aaa" }), 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "bbb" }), 0);
	assert_int_equal(table_add_row(&t, (const char *const[]){ "ccc" }), -E2BIG);
	buf_init(&out, 8);
	assert_int_equal(table_format(&t, &out), 0);
	buf_deinit(&out);
	buf_init(&out, 7);
	assert_int_equal(table_format(&t, &out), -EMSGSIZE);
}

static int make_table(void *ctx)
{
	(void)ctx;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, 2);
	int r = table_add_row(&t, (const char *const[]){ "a", "b" });
	return r < 0 ? r : format(&t, &out);
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc(make_table, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_columns),        fixture_test(test_tab_stop),
		fixture_test(test_hostile_cells),  fixture_test(test_characters),
		fixture_test(test_width),          fixture_test(test_limits),
		fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
