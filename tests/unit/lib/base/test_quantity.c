/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/quantity.h"

#include <errno.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void test_quantity(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t value;
	} samples[] = {
		{ "5", 0, 5000 },
		{ "1.5", 0, 1500 },
		{ "0.001", 0, 1 },
		{ "0", 0, 0 },
		{ "00000000000000000000000001", 0, 1000 },
		{ "00.5", 0, 500 },
		{ "1500m", 0, 1500 },
		{ "1.5m", 0, 2 }, /* a part of a thousandth counts as one */
		{ "2k", 0, 2000000 },
		{ "512M", 0, INT64_C(512000000000) },
		{ "512Mi", 0, (INT64_C(512) << 20) * 1000 },
		{ "9223372036854775", 0, INT64_C(9223372036854775000) },
		{ "9223372036854776", -ERANGE, 0 },
		{ "8388608Gi", 0, (INT64_C(8388608) << 30) * 1000 },
		{ "8589935Gi", -ERANGE, 0 },
		{ "99999999999999999999", -ERANGE, 0 },
		{ "1.0001", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "1K", -EINVAL, 0 },
		{ "1MB", -EINVAL, 0 },
		{ "1P", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		int64_t n = 0;
		int r = quantity_parse(samples[i].text, &n);
		if (r != samples[i].r || (r == 0 && n != samples[i].value))
			fail_msg("%s: %d, %jd", samples[i].text, r, (intmax_t)n);
	}
}

static void test_size(void **state)
{
	uint64_t n = 4711;
	(void)state;
	assert_int_equal(size_parse("1Ki", 1024, 1024, &n), 0);
	assert_int_equal(n, 1024);
	assert_int_equal(size_parse("1Ki", 1025, UINT64_MAX, &n), -ERANGE);
	assert_int_equal(size_parse("1Ki", 0, 1023, &n), -ERANGE);
	assert_int_equal(size_parse("x", 0, 1023, &n), -EINVAL);
	assert_int_equal(n, 1024);
	assert_int_equal(size_parse("1m", 0, 1, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(size_parse("1024Ti", 0, UINT64_MAX, &n), 0);
	assert_int_equal(n, UINT64_C(1) << 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_quantity),
		fixture_test(test_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
