/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/tsc.h"

#include <stdlib.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

/* Two measurements of one counter agree, whatever else the machine does. */
static void test_agrees_with_itself(void **state)
{
	(void)state;
	struct tsc_reading begin = tsc_begin();
	long a = tsc_measure_khz(&begin); /* waits */
	long b = tsc_measure_khz(&begin); /* has no need to */
	assert_true(a > 100000); /* 100 MHz: slower than any processor that runs 64-bit code */
	assert_true(labs(a - b) < a / 500);
	long c = tsc_measure_khz(&(struct tsc_reading){ 0 });
	assert_true(labs(a - c) < a / 500);
}

/* What was read too long ago, or will be, is not measured from: it would say something else. */
static void test_age(void **state)
{
	(void)state;
	struct tsc_reading now = tsc_begin();
	long want = tsc_measure_khz(&now);
	const int64_t wrong[] = { TSC_AGE_MAX_NS + NS_PER_SEC, -NS_PER_SEC };
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct tsc_reading r = { now.ns - wrong[i], now.ticks };
		assert_true(labs((long)tsc_measure_khz(&r) - want) < want / 500);
	}
	struct tsc_reading r = { now.ns - NS_PER_SEC, now.ticks };
	assert_true((long)tsc_measure_khz(&r) < want / 2); /* the second counts */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_agrees_with_itself),
		fixture_test(test_age),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
