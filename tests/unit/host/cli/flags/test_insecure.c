/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/insecure.h"

#include <errno.h>

#include "tests/support/fixture.h"

static void test_good(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned want;
	} cases[] = {
		{ "none", 0 },
		{ "image", INSECURE_IMAGE },
		{ "Image,TLS", INSECURE_IMAGE | INSECURE_TLS },
		{ "ondisk,http,pubkey", INSECURE_ONDISK | INSECURE_HTTP | INSECURE_PUBKEY },
		{ "capabilities", INSECURE_CAPABILITIES },
		{ "paths,seccomp", INSECURE_PATHS | INSECURE_SECCOMP },
		{ "all-fetch", INSECURE_IMAGE | INSECURE_TLS | INSECURE_HTTP | INSECURE_PUBKEY },
		{ "ALL-RUN,seccomp,none",
		  INSECURE_CAPABILITIES | INSECURE_PATHS | INSECURE_SECCOMP },
		{ "all", 0xff },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		unsigned got = ~0U;
		if (insecure_options(cases[i].text, &got, &e) != 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(got, cases[i].want);
	}
}

static void test_bad(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "unknown option \"\"" },
		{ "image,", "unknown option \"\"" },
		{ "imag", "unknown option \"imag\"" },
		{ "images", "unknown option \"images\"" },
		{ "tls,all run", "unknown option \"all run\"" },
		{ "tls,http,TLS", "duplicated option \"TLS\"" },
		{ "none,none", "duplicated option \"none\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		unsigned got = 4711;
		assert_int_equal(insecure_options(cases[i].text, &got, &e), -EINVAL);
		assert_string_equal(e.text, cases[i].error);
		assert_int_equal(got, 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),
		fixture_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
