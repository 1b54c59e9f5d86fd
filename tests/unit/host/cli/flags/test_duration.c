/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/duration.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{ "0", 0 },
		{ "-0", 0 },
		{ "0s", 0 },
		{ "30m", 1800 * NS_PER_SEC },
		{ "1h15m30.918s", 4530 * NS_PER_SEC + 918 * NS_PER_MS },
		{ "24h", 86400 * NS_PER_SEC },
		{ ".5s", NS_PER_SEC / 2 },
		{ "1.s", NS_PER_SEC },
		{ "-1.5h", -5400 * NS_PER_SEC },
		{ "+5s", 5 * NS_PER_SEC },
		{ "1us", 1000 },
		{ "1.0000000001s", NS_PER_SEC },
		{ "9223372036854775807ns", INT64_MAX },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = 1;
		assert_int_equal(duration_parse(cases[i].text, &ns), 0);
		assert_true(ns == cases[i].ns);
	}
}

static void test_bad(void **state)
{
	static const char *const bad[] = { "",     "-",     "3",    "-5",  "s",   ".s",
					   "1d",   "1 h",   " 1h",  "1hm", "1h1", "00",
					   "1e3s", "1..5s", "0x1s", "true" };
	static const char *const big[] = { "9223372036854775808ns", "2562048h",
					   "9223372036854775807ns1ns", "0.99999999999999999999999s",
					   "99999999999999999999h" };
	int64_t ns = 77;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(duration_parse(bad[i], &ns), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(big); i++)
		assert_int_equal(duration_parse(big[i], &ns), -ERANGE);
	assert_int_equal(ns, 77);
}

static void test_format(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 1, "1ns" },
		{ 1500, "1.5us" },
		{ 20 * NS_PER_MS, "20ms" },
		{ NS_PER_SEC, "1s" },
		{ 90 * NS_PER_SEC, "1m30s" },
		{ 1800 * NS_PER_SEC, "30m0s" },
		{ 3600 * NS_PER_SEC, "1h0m0s" },
		{ 1500 * NS_PER_MS, "1.5s" },
		{ INT64_MAX, "2562047h47m16.854775807s" },
	};
	char text[DURATION_TEXT_MAX];
	int64_t ns;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		duration_format(cases[i].ns, text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(duration_parse(text, &ns), 0);
		assert_true(ns == cases[i].ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_parse),
		fixture_test(test_bad),
		fixture_test(test_format),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
