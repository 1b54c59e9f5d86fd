/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/armour.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"

#define BEGIN "-----BEGIN PGP PUBLIC KEY BLOCK-----"
#define END   "-----END PGP PUBLIC KEY BLOCK-----"
#define BODY  "\n\nmDMEZ\n=abcd\n"
#define KEY   BEGIN BODY END

static void check_found(const char *text, const char *want)
{
	size_t start = 0, len = 0;
	assert_int_equal(armour_find_key(text, strlen(text), &start, &len, NULL), 0);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(text + start, want, len);
}

static void check_refused(const char *text, size_t len, const char *want)
{
	struct err e = ERR_INIT;
	size_t start, n;
	assert_int_equal(armour_find_key(text, len, &start, &n, &e), -EINVAL);
	assert_string_equal(e.text, want);
}

static void test_found(void **state)
{
	(void)state;
	check_found(KEY, KEY);
	check_found("words\n\n" KEY "\nmore words\n-----BEGIN SOMETHING\n", KEY);
	check_found(BEGIN " \r\n\r\nx\r\n" END "\t\r\n", BEGIN " \r\n\r\nx\r\n" END);
}

static void test_refused(void **state)
{
	(void)state;
	static const char none[] =
		"it is not an ASCII-armoured public key (export it with gpg --armor --export)";
	static const char several[] =
		"it has an OpenPGP armour that is not one complete public key "
		"(give one key per file)";
	static const char private[] =
		"it is a private key (export the public one: gpg --armor --export)";
	static const char cut[] = "the end of the key is missing (get the file again)";
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", none },
		{ "text\n", none },
		{ " " KEY, several }, /* its END line is at the start of a line */
		{ "- " BEGIN, none },
		{ BEGIN BODY, cut },
		{ BEGIN, cut },
		{ KEY "\n" KEY, several },
		{ KEY END, several },
		{ END BODY BEGIN, several },
		{ BEGIN BODY KEY, several },
		{ BEGIN "\n" BEGIN BODY END, several },
		{ KEY "\n" END, several },
		{ "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n", several },
		{ KEY "\n-----BEGIN PGP MESSAGE-----\n", several },
		{ "-----BEGIN PGP PRIVATE KEY BLOCK-----\n", private },
		{ "-----BEGIN PGP PUBLIC KEY BLOCK, PART 1/2-----\n", several },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_refused(cases[i].text, strlen(cases[i].text), cases[i].want);
	static const char nul[] = KEY "\n\0\n";
	check_refused(nul, sizeof(nul) - 1,
		      "it is not ASCII-armoured (export it with gpg --armor --export)");
}

static void test_limit(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	size_t start, len;
	cleanup_free char *text = malloc(TRUST_KEY_MAX + 1);
	memset(text, '\n', TRUST_KEY_MAX + 1);
	memcpy(text + TRUST_KEY_MAX - strlen(KEY), KEY, strlen(KEY));
	assert_int_equal(armour_find_key(text, TRUST_KEY_MAX, &start, &len, NULL), 0);
	assert_int_equal(start + len, TRUST_KEY_MAX);
	assert_int_equal(armour_find_key(text, TRUST_KEY_MAX + 1, &start, &len, &e), -EFBIG);
	assert_string_equal(e.text, "it has more than 1048576 bytes (export it with less)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_found),
		fixture_test(test_refused),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
