/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/num.h"

#include <errno.h>

#include "tests/support/fixture.h"

struct sample {
	const char *text;
	uint64_t max;
	int r;
	uint64_t value;
};

static void test_u64(void **state)
{
	(void)state;
	static const struct sample samples[] = {
		{ "0", 0, 0, 0 },
		{ "007", 10, 0, 7 },
		{ "10", 10, 0, 10 },
		{ "11", 10, -ERANGE, 0 },
		{ "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999", UINT64_MAX, -ERANGE, 0 },
		{ "", 10, -EINVAL, 0 },
		{ " 1", 10, -EINVAL, 0 },
		{ "1 ", 10, -EINVAL, 0 },
		{ "+1", 10, -EINVAL, 0 },
		{ "-1", 10, -EINVAL, 0 },
		{ "0x1", 10, -EINVAL, 0 },
		{ "1K", 10000, -EINVAL, 0 },
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		uint64_t n = 4711;
		assert_int_equal(num_parse_u64(samples[i].text, samples[i].max, &n), samples[i].r);
		assert_int_equal(n, samples[i].r == 0 ? samples[i].value : 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_u64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
