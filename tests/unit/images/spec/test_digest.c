/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"

#include "tests/support/fixture.h"

#define HEX     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONGER  "sha256:" HEX "0"
#define SPACE   " sha256:" HEX
#define NEWLINE "sha256:" HEX "\n"

static void test_parse(void **state)
{
	(void)state;
	struct digest d;
	assert_int_equal(digest_parse("sha256:" HEX, &d), 0);
	assert_string_equal(d.hex, HEX);
	static const char *const bad[] = {
		"",
		"sha256",
		"sha256:",
		":",
		HEX,
		LONGER,
		"sha512:a b",
		NEWLINE,
		SPACE,
		"SHA256:x",
		"sha512:",
		"sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"sha256:../../../etc/passwd",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(digest_parse(bad[i], &d), -EINVAL);
	assert_int_equal(digest_parse("sha512:" HEX HEX, &d), DIGEST_E_ALGORITHM);
	assert_int_equal(digest_parse("blake3:x", &d), DIGEST_E_ALGORITHM);
	assert_string_equal(d.hex, HEX);
}

static void test_hash(void **state)
{
	(void)state;
	/* FIPS 180-2, appendix B.1. */
	static const char abc[] =
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct digest d, again;
	digest_of("abc", 3, &d);
	assert_string_equal(d.hex, abc);
	struct hasher h;
	hasher_init(&h);
	hasher_update(&h, "a", 1);
	hasher_update(&h, "bc", 2);
	hasher_finish(&h, &again);
	assert_true(digest_equal(&d, &again));
	digest_of("abd", 3, &again);
	assert_false(digest_equal(&d, &again));
}

static void test_chain(void **state)
{
	(void)state;
	struct digest ids[3], chain, want;
	digest_of("1", 1, &ids[0]);
	digest_of("2", 1, &ids[1]);
	digest_of("3", 1, &ids[2]);
	digest_chain(ids, 1, &chain);
	assert_true(digest_equal(&chain, &ids[0]));
	char text[256];
	int n = snprintf(text, sizeof(text), "sha256:%s sha256:%s", ids[0].hex, ids[1].hex);
	digest_of(text, (size_t)n, &want);
	digest_chain(ids, 2, &chain);
	assert_true(digest_equal(&chain, &want));
	n = snprintf(text, sizeof(text), "sha256:%s sha256:%s", want.hex, ids[2].hex);
	digest_of(text, (size_t)n, &want);
	digest_chain(ids, 3, &chain);
	assert_true(digest_equal(&chain, &want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_parse),
		fixture_test(test_hash),
		fixture_test(test_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
