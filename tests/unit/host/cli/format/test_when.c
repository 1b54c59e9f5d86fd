/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

#define HOUR  INT64_C(3600)
#define DAY   (24 * HOUR)
#define MONTH (30 * DAY)

static void test_relative(void **state)
{
	static const struct {
		int64_t seconds;
		const char *want;
	} cases[] = {
		{ 0, "now" },
		{ 1, "1 second ago" },
		{ 2, "2 seconds ago" },
		{ 59, "59 seconds ago" },
		{ 60, "1 minute ago" },
		{ 119, "1 minute ago" },
		{ 120, "2 minutes ago" },
		{ HOUR - 1, "59 minutes ago" },
		{ HOUR, "1 hour ago" },
		{ 3 * HOUR, "3 hours ago" },
		{ DAY, "1 day ago" },
		{ 6 * DAY, "6 days ago" },
		{ 7 * DAY, "1 week ago" },
		{ 29 * DAY, "4 weeks ago" },
		{ MONTH, "1 month ago" },
		{ 11 * MONTH, "11 months ago" },
		{ 12 * MONTH, "1 year ago" },
		{ 18 * MONTH, "2 years ago" },
		{ 36 * MONTH, "3 years ago" },
		{ INT64_C(37) * 12 * MONTH, "a long while ago" },
		{ -1, "1 second from now" },
		{ -2 * DAY, "2 days from now" },
	};
	(void)state;
	const int64_t now = INT64_C(2000000000) * NS_PER_SEC;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got[WHEN_TEXT_MAX];
		when_relative(now - cases[i].seconds * NS_PER_SEC, now, got);
		assert_string_equal(got, cases[i].want);
	}
}

static void test_absolute(void **state)
{
	static const struct {
		const char *zone;
		int64_t ns;
		const char *want;
	} cases[] = {
		{ "UTC", INT64_C(1136214245999000000), "2006-01-02 15:04:05.999 +0000 UTC" },
		{ "UTC", INT64_C(1136214245900999999), "2006-01-02 15:04:05.9 +0000 UTC" },
		{ "UTC", INT64_C(1136214245010000000), "2006-01-02 15:04:05.01 +0000 UTC" },
		{ "UTC", INT64_C(1136214245000000001), "2006-01-02 15:04:05 +0000 UTC" },
		{ "MST7", INT64_C(1136239445500000000), "2006-01-02 15:04:05.5 -0700 MST" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got[WHEN_TEXT_MAX];
		setenv("TZ", cases[i].zone, 1);
		tzset();
		when_absolute(cases[i].ns, got);
		assert_string_equal(got, cases[i].want);
	}
}

static void test_rfc3339(void **state)
{
	static const struct {
		int64_t ns;
		const char *want;
	} cases[] = {
		{ INT64_C(1136214245999000001), "2006-01-02T15:04:05.999000001Z" },
		{ INT64_C(1136214245000000000), "2006-01-02T15:04:05.000000000Z" },
		{ 0, "1970-01-01T00:00:00.000000000Z" },
		{ -1, "1970-01-01T00:00:00.000000000Z" },
		{ INT64_MAX, "2262-04-11T23:47:16.854775807Z" },
	};
	(void)state;
	setenv("TZ", "MST7", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got[WHEN_TEXT_MAX];
		when_rfc3339(cases[i].ns, got);
		assert_string_equal(got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_relative),
		fixture_test(test_absolute),
		fixture_test(test_rfc3339),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
