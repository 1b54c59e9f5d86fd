/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/random.h"

#include <string.h>

#include "tests/support/fixture.h"

static void test_bytes(void **state)
{
	(void)state;
	unsigned char a[256] = { 0 }, b[256] = { 0 };
	assert_int_equal(random_bytes(a, sizeof(a)), 0);
	assert_int_equal(random_bytes(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_int_equal(random_bytes(a, 0), 0);
}

static void test_writes_no_more(void **state)
{
	(void)state;
	unsigned char mem[17];
	memset(mem, 0xaa, sizeof(mem));
	assert_int_equal(random_bytes(mem, 16), 0);
	assert_int_equal(mem[16], 0xaa);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_bytes),
		fixture_test(test_writes_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
