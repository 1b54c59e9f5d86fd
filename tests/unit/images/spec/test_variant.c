/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/variant.h"

#include <stddef.h>

#include "tests/support/fixture.h"

static void test_fit(void **state)
{
	static const struct {
		const char *architecture, *variant;
		unsigned int level;
		enum variant_fit want;
	} cases[] = {
		{ "amd64", "", 1, VARIANT_NONE },       { "amd64", "v1", 1, VARIANT_BASE },
		{ "amd64", "v2", 1, VARIANT_TOO_NEW },  { "amd64", "v2", 2, VARIANT_FITS },
		{ "amd64", "v3", 4, VARIANT_FITS },     { "amd64", "v9", 4, VARIANT_TOO_NEW },
		{ "amd64", "v0", 4, VARIANT_UNKNOWN },  { "amd64", "v", 4, VARIANT_UNKNOWN },
		{ "amd64", "v12", 4, VARIANT_UNKNOWN }, { "amd64", "3", 4, VARIANT_UNKNOWN },
		{ "arm64", "v8", 0, VARIANT_BASE },     { "arm64", "v9", 0, VARIANT_UNKNOWN },
		{ "s390x", "", 0, VARIANT_NONE },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			variant_fit(cases[i].architecture, cases[i].variant, cases[i].level),
			cases[i].want);
}

static void test_level(void **state)
{
	(void)state;
#if defined(__x86_64__)
	assert_in_range(variant_level(), 1, 4);
#else
	assert_int_equal(variant_level(), 0);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_fit),
		fixture_test(test_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
