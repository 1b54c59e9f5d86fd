/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hex.h"

#include <errno.h>

#include "tests/support/fixture.h"

static void test_encode(void **state)
{
	(void)state;
	char out[9] = "unset";
	hex_encode((const unsigned char *)"\x00\x9f\xa0\xff", 4, out);
	assert_string_equal(out, "009fa0ff");
	hex_encode(NULL, 0, out);
	assert_string_equal(out, "");
}

static void test_round_trip(void **state)
{
	(void)state;
	unsigned char bytes[256], back[256];
	char text[2 * 256 + 1];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	hex_encode(bytes, sizeof(bytes), text);
	assert_int_equal(hex_decode(text, back, sizeof(back)), 0);
	assert_memory_equal(bytes, back, sizeof(bytes));
}

static void test_decode_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = { "",     "a",    "abc",  "abcde",  "ab c",
					   "ABCD", "abcg", " abc", "ab\xffz" };
	unsigned char out[2] = { 1, 2 };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hex_decode(bad[i], out, 2), -EINVAL);
		assert_false(hex_is_valid(bad[i], 4));
	}
	assert_int_equal(out[0], 1);
	assert_true(hex_is_valid("", 0));
	assert_true(hex_is_valid("09af", 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_encode),
		fixture_test(test_round_trip),
		fixture_test(test_decode_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
