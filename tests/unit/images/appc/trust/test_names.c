/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/names.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static void test_good_names(void **state)
{
	(void)state;
	static const char *const names[] = { "a",
					     "example.com",
					     "example.com/a/b",
					     "localhost:5000/x",
					     "Example.com/x~_1-2.3",
					     "1/2/3" };
	char longest[TRUST_NAME_MAX + 1];
	memset(longest, 'x', TRUST_NAME_MAX);
	longest[TRUST_NAME_MAX] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)

		assert_int_equal(trust_check_name("--prefix", names[i], NULL), 0);
	assert_int_equal(trust_check_name("--prefix", longest, NULL), 0);
}

static void test_bad_names(void **state)
{
	(void)state;
	static const char *const names[] = {
		"/a",   "a/",  "a//b", ".",  "..",  "a/..", "../a", "a/../b",   ".a",
		"a/.b", "a b", "a\nb", "a*", "a/*", "-a",   "a\\b", "\xc3\xa4", "a\x7f"
	};
	struct err e;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		e = ERR_INIT;
		assert_int_equal(trust_check_name("--prefix", names[i], &e), -EINVAL);
		assert_non_null(
			strstr(e.text, "is not a name like example.com/app (each part begins"));
	}
	char beyond[TRUST_NAME_MAX + 2];
	memset(beyond, 'x', TRUST_NAME_MAX + 1);
	beyond[TRUST_NAME_MAX + 1] = '\0';
	assert_int_equal(trust_check_name("--prefix", beyond, &e), -EINVAL);
	assert_string_equal(e.text, "--prefix has 1 to 255 bytes, like example.com/app");
	assert_int_equal(trust_check_name("--prefix", "", &e), -EINVAL);
	assert_string_equal(e.text, "--prefix has 1 to 255 bytes, like example.com/app");
	assert_int_equal(trust_check_name("--prefix", "https://example.com/x", &e), -EINVAL);
	assert_string_equal(e.text, "--prefix must not contain a URL scheme, omit https://");
}

#define SHA1_DIGITS "0123456789abcdef0123456789abcdef01234567"

static void test_fingerprints(void **state)
{
	(void)state;
	char out[TRUST_FINGERPRINT_MAX + 1], formatted[TRUST_FORMATTED_MAX + 1];
	assert_true(trust_is_fingerprint(SHA1_DIGITS));
	assert_true(trust_is_fingerprint(SHA1_DIGITS "89abcdef0123456789abcdef"));
	assert_false(trust_is_fingerprint(SHA1_DIGITS "0"));
	assert_false(trust_is_fingerprint("0123456789ABCDEF0123456789ABCDEF01234567"));
	assert_false(trust_is_fingerprint(""));
	assert_int_equal(trust_copy_fingerprint(out, "0123456789ABCDEF0123456789abcdef01234567"),
			 0);
	assert_string_equal(out, SHA1_DIGITS);
	assert_int_equal(trust_copy_fingerprint(out, "0123456789ABCDEG0123456789abcdef01234567"),
			 -EINVAL);
	assert_int_equal(trust_copy_fingerprint(out, SHA1_DIGITS SHA1_DIGITS), -EINVAL);
	trust_format_fingerprint(SHA1_DIGITS, formatted);
	assert_string_equal(formatted, "0123 4567 89AB CDEF 0123  4567 89AB CDEF 0123 4567");
	trust_format_fingerprint(SHA1_DIGITS "89abcdef0123456789abcdef", formatted);
	assert_int_equal(strlen(formatted), TRUST_FORMATTED_MAX);
}

static void check_identity(const char *in, const char *want)
{
	char out[TRUST_IDENTITY_MAX + 1];
	trust_copy_identity(out, in);
	assert_string_equal(out, want);
}

static void test_identities(void **state)
{
	(void)state;
	check_identity("", "");
	check_identity("J\xc3\xb6rg (\xe2\x82\xac) <j@example.com>",
		       "J\xc3\xb6rg (\xe2\x82\xac) <j@example.com>");
	check_identity("a\nb\x1b[31m\x7f", "a?b?[31m?");
	check_identity("\xc2\x9b"
		       "31m",
		       "?31m");
	check_identity("x\xe2\x80\xae"
		       "fdp\xe2\x80\x8f\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c",
		       "x?fdp????");
	check_identity("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xaa",
		       "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xaa");
	check_identity("\xff\xe2\x80", "???");
	char in[TRUST_IDENTITY_MAX + 2], out[TRUST_IDENTITY_MAX + 1];
	memset(in, 'x', sizeof(in) - 1);
	in[sizeof(in) - 1] = '\0';
	trust_copy_identity(out, in);
	assert_int_equal(strlen(out), TRUST_IDENTITY_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good_names),
		fixture_test(test_bad_names),
		fixture_test(test_fingerprints),
		fixture_test(test_identities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
