/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void assert_content(const struct buf *b, const char *want)
{
	assert_int_equal(buf_len(b), strlen(want));
	assert_memory_equal(buf_data(b), want, strlen(want));
}

static void test_empty(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 10);
	assert_null(buf_data(&b));
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_room(&b), 10);
	buf_consume(&b, 0);
	buf_deinit(&b);
	buf_deinit(NULL);
	assert_int_equal(buf_room(&b), 10);
}

static void test_limit(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 5);
	assert_int_equal(buf_append(&b, "123456", 6), -EMSGSIZE);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_append(&b, "12345", 5), 0);
	assert_int_equal(buf_room(&b), 0);
	assert_int_equal(buf_append(&b, "6", 1), -EMSGSIZE);
	assert_int_equal(buf_append(&b, "", 0), 0);
	assert_content(&b, "12345");
	buf_consume(&b, 1);
	assert_int_equal(buf_room(&b), 1);
	assert_int_equal(buf_append(&b, "6", 1), 0);
	assert_content(&b, "23456");
}

static void test_limit_zero_and_largest(void **state)
{
	(void)state;
	cleanup_buf struct buf none, all;
	buf_init(&none, 0);
	assert_int_equal(buf_append(&none, "", 0), 0);
	assert_int_equal(buf_append(&none, "1", 1), -EMSGSIZE);
	buf_init(&all, SIZE_MAX);
	assert_int_equal(buf_puts(&all, "x"), 0);
	assert_content(&all, "x");
}

static void test_printf(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 8);
	assert_int_equal(buf_printf(&b, "%d-%s", 12, "345"), 0);
	assert_int_equal(buf_printf(&b, "%s", "789"), -EMSGSIZE);
	assert_content(&b, "12-345");
	assert_int_equal(buf_printf(&b, "%s", "78"), 0);
	assert_content(&b, "12-34578");
}

static void test_growth_keeps_content(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 100000);
	for (int i = 0; i < 10000; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%05d", i);
		assert_int_equal(buf_append(&b, text, 5), 0);
		if (i % 3 == 0)
			buf_consume(&b, 5);
	}
	/* 10,000 in, 3,334 out: the first one left is number 3334. */
	assert_int_equal(buf_len(&b), 5 * (10000 - 3334));
	assert_memory_equal(buf_data(&b), "03334", 5);
	assert_memory_equal(buf_data(&b) + buf_len(&b) - 5, "09999", 5);
}

static void test_reserve(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	char *where = NULL;
	buf_init(&b, 4);
	assert_int_equal(buf_reserve(&b, 5, &where), -EMSGSIZE);
	assert_null(where);
	assert_int_equal(buf_reserve(&b, 4, &where), 0);
	memcpy(where, "ab", 2);
	buf_commit(&b, 2);
	assert_content(&b, "ab");
	assert_int_equal(buf_reserve(&b, SIZE_MAX, &where), -EMSGSIZE);
}

static void test_take_string(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 4);
	cleanup_free char *empty = buf_take_string(&b);
	assert_string_equal(empty, "");
	assert_int_equal(buf_puts(&b, "abcd"), 0);
	buf_consume(&b, 1);
	cleanup_free char *s = buf_take_string(&b);
	assert_string_equal(s, "bcd");
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_room(&b), 4);
	/* A full buffer has room for the NUL. */
	assert_int_equal(buf_puts(&b, "1234"), 0);
	cleanup_free char *full = buf_take_string(&b);
	assert_string_equal(full, "1234");
}

static int use_all(void *ctx)
{
	(void)ctx;
	cleanup_buf struct buf b;
	buf_init(&b, 4096);
	int r = buf_puts(&b, "start");
	for (int i = 0; r == 0 && i < 300; i++)
		r = buf_printf(&b, "%09d", i);
	if (r < 0)
		return r;
	cleanup_free char *s = buf_take_string(&b);
	return s ? 0 : -ENOMEM;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(use_all, NULL);
}

static void test_failed_append_changes_nothing(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(buf_puts(&b, "abc"), 0);
	char big[1000] = { 0 };
	fault_arm(1);
	int r = buf_append(&b, big, sizeof(big));
	assert_true(fault_disarm());
	assert_int_equal(r, -ENOMEM);
	assert_content(&b, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_empty),
		fixture_test(test_limit),
		fixture_test(test_limit_zero_and_largest),
		fixture_test(test_printf),
		fixture_test(test_growth_keeps_content),
		fixture_test(test_reserve),
		fixture_test(test_take_string),
		fixture_test(test_short_of_memory),
		fixture_test(test_failed_append_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
