/* SPDX-License-Identifier: Apache-2.0 */
/* Scattered memory: copies and slices at and beyond the ends. */
#include "stage1-kvm/vsock/iov.h"

#include <string.h>

#include "tests/support/fixture.h"

static char a[3], b[1], c[6];

static const struct iovec list[] = {
	{ a, sizeof(a) },
	{ b, 0 },
	{ b, sizeof(b) },
	{ c, sizeof(c) },
};

static void fill(void)
{
	for (int i = 0; i < 3; i++)
		a[i] = (char)('a' + i);
	b[0] = 'd';
	for (int i = 0; i < 6; i++)
		c[i] = (char)('e' + i);
}

static void test_copy_out(void **state)
{
	char out[16] = { 0 };
	(void)state;
	fill();
	assert_int_equal(iov_to_mem(list, 4, out, 0), 0);
	assert_int_equal(iov_to_mem(list, 4, out, 5), 5);
	assert_memory_equal(out, "abcde\0", 6);
	assert_int_equal(iov_to_mem(list, 4, out, sizeof(out)), 10);
	assert_memory_equal(out, "abcdefghij\0", 11);
	assert_int_equal(iov_to_mem(list, 0, out, sizeof(out)), 0);
}

static void test_copy_in(void **state)
{
	(void)state;
	fill();
	assert_int_equal(iov_from_mem(list, 4, "XYZWV", 5), 5);
	assert_memory_equal(a, "XYZ", 3);
	assert_memory_equal(b, "W", 1);
	assert_memory_equal(c, "Vfghij", 6);
	assert_int_equal(iov_from_mem(list, 3, "123456", 6), 4);
	assert_memory_equal(c, "Vfghij", 6);
}

static void test_slices(void **state)
{
	static const struct {
		size_t skip, take, n;
		const char *expect;
	} cases[] = {
		{ 0, 10, 3, "abcdefghij" }, { 0, 0, 0, "" },    { 10, 5, 0, "" },
		{ 9, 5, 1, "j" },           { 2, 3, 3, "cde" }, { 3, 1, 1, "d" },
		{ 4, 100, 1, "efghij" },    { 2, 1, 1, "c" },   { 100, 100, 0, "" },
	};
	(void)state;
	fill();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct iovec out[4];
		char text[16] = { 0 };
		size_t n = iov_slice(list, 4, cases[i].skip, cases[i].take, out);
		assert_int_equal(n, cases[i].n);
		iov_to_mem(out, n, text, sizeof(text));
		assert_string_equal(text, cases[i].expect);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_copy_out),
		fixture_test(test_copy_in),
		fixture_test(test_slices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
