/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/tsc.h"

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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_agrees_with_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
