/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/signame.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void test_names(void **state)
{
	static const struct {
		const char *text;
		int number;
	} samples[] = {
		{ "SIGTERM", 15 },
		{ "TERM", 15 },
		{ "sigterm", 15 },
		{ "Quit", 3 },
		{ "15", 15 },
		{ "1", 1 },
		{ "64", 64 },
		{ "WINCH", 28 },
		{ "SIGSYS", 31 },
		{ "SIGRTMIN", 34 },
		{ "rtmin+0", 34 },
		{ "RTMIN+3", 37 },
		{ "SIGRTMIN+30", 64 },
		{ "SIGRTMAX", 64 },
		{ "RTMAX-30", 34 },
		{ "RTMAX-2", 62 },
		{ "", -EINVAL },
		{ "SIG", -EINVAL },
		{ "0", -EINVAL },
		{ "65", -EINVAL },
		{ "-15", -EINVAL },
		{ "SIGSIGTERM", -EINVAL },
		{ "TERM ", -EINVAL },
		{ "RTMIN+31", -EINVAL },
		{ "RTMIN-1", -EINVAL },
		{ "RTMAX+1", -EINVAL },
		{ "RTMIN+", -EINVAL },
		{ "RTMINx", -EINVAL },
		{ "RTMAX-31", -EINVAL },
		{ "15.0", -EINVAL },
		{ "SIGFOO", -EINVAL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		if (signame_parse(samples[i].text) != samples[i].number)
			fail_msg("\"%s\": %d", samples[i].text, signame_parse(samples[i].text));
}

/* Every number has a name that fits and means it. */
static void test_round_trip(void **state)
{
	char name[SIGNAME_MAX + 1];
	(void)state;
	for (int n = 1; n <= 64; n++)
		assert_int_equal(signame_parse(signame_format(n, name)), n);
	assert_string_equal(signame_format(SIGTERM, name), "SIGTERM");
	assert_string_equal(signame_format(32, name), "32"); /* the C library's own */
	assert_string_equal(signame_format(34, name), "SIGRTMIN");
	assert_string_equal(signame_format(37, name), "SIGRTMIN+3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
