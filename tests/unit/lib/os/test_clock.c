/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/clock.h"

#include <time.h>

#include "tests/support/fixture.h"

static void test_clocks(void **state)
{
	(void)state;
	int64_t a = clock_monotonic_ns(), b = clock_monotonic_ns();
	assert_true(a > 0);
	assert_true(b >= a);
	/* Nanoseconds since 1970: the same second as time(2), give or take one that passes. */
	int64_t before = (int64_t)time(NULL) - 1;
	int64_t now = clock_realtime_ns() / NS_PER_SEC;
	assert_true(now >= before);
	assert_true(now <= (int64_t)time(NULL) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_clocks) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
