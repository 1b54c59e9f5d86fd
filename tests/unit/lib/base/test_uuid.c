/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/uuid.h"

#include "tests/support/fixture.h"

static void test_from_random(void **state)
{
	(void)state;
	struct uuid id;
	unsigned char bytes[UUID_BYTES] = { 0 };
	uuid_from_random(bytes, &id);
	assert_string_equal(id.text, "00000000-0000-4000-8000-000000000000");
	for (size_t i = 0; i < UUID_BYTES; i++)
		bytes[i] = 0xff;
	uuid_from_random(bytes, &id);
	assert_string_equal(id.text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
	assert_true(uuid_is_valid(id.text));
}

static void test_is_valid(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"0",
		"00000000-0000-4000-8000-00000000000",
		"00000000-0000-4000-8000-0000000000000",
		"00000000-0000-4000-8000-00000000000G",
		"00000000-0000-4000-8000-00000000000A",
		"000000000000-4000-8000-000000000000-",
		"00000000-0000-4000-8000-0000000000\n0",
		"../../../../../../../../../etc/passwd",
		"00000000/0000-4000-8000-000000000000",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(uuid_is_valid(bad[i]));
	assert_true(uuid_is_valid("01234567-89ab-cdef-0123-456789abcdef"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_from_random),
		fixture_test(test_is_valid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
