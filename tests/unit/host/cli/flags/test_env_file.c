/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/env_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static int parse(const char *text, struct strv *env, struct err *e)
{
	char copy[512];
	snprintf(copy, sizeof(copy), "%s", text);
	return env_file_parse(copy, strlen(copy), env, e);
}

static void test_good(void **state)
{
	(void)state;
	cleanup_strv struct strv env;
	struct err e = ERR_INIT;
	strv_init(&env, 8);
	assert_int_equal(
		parse("# a comment\n\nA=b\n  ; another\nEMPTY=\nTWO= words = \nlast=x", &env, &e),
		0);
	assert_int_equal(env.n, 4);
	assert_string_equal(env.v[0], "A=b");
	assert_string_equal(env.v[1], "EMPTY=");
	assert_string_equal(env.v[2], "TWO= words = ");
	assert_string_equal(env.v[3], "last=x");
	assert_int_equal(parse("", &env, &e), 0);
}

static void test_windows(void **state)
{
	(void)state;
	cleanup_strv struct strv env;
	struct err e = ERR_INIT;
	strv_init(&env, 8);
	assert_int_equal(parse("\xef\xbb\xbf"
			       "A=1\r\n\r\n \r\n# x\r\nE=\r\nIN=a\rb\nEND= c \r",
			       &env, &e),
			 0);
	assert_int_equal(env.n, 4);
	assert_string_equal(env.v[0], "A=1");
	assert_string_equal(env.v[1], "E=");
	assert_string_equal(env.v[2], "IN=a\rb");
	assert_string_equal(env.v[3], "END= c ");
}

static void test_blanks_ahead(void **state)
{
	(void)state;
	cleanup_strv struct strv env;
	struct err e = ERR_INIT;
	strv_init(&env, 8);
	assert_int_equal(parse("  A=b\n\t B= c\n", &env, &e), 0);
	assert_int_equal(env.n, 2);
	assert_string_equal(env.v[0], "A=b");
	assert_string_equal(env.v[1], "B= c");
	assert_int_equal(parse("\tA=d", &env, &e), -EINVAL);
	assert_string_equal(e.text, "line 1: variable \"A\" is already set");
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "A=b\nno variable\n", "line 2: \"no variable\" is not of the form NAME=VALUE" },
		{ "=x", "line 1: \"=x\" is not of the form NAME=VALUE" },
		{ "A=1\n\nA=2", "line 3: variable \"A\" is already set" },
		{ "A=\nB=\nC=\n", "line 3: at most 2 variables: Argument list too long" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv env;
		struct err e = ERR_INIT;
		strv_init(&env, 2);
		assert_true(parse(cases[i].text, &env, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

static void test_no_text(void **state)
{
	(void)state;
	cleanup_strv struct strv env;
	struct err e = ERR_INIT;
	char text[] = "A=b\0C=d";
	strv_init(&env, 2);
	assert_int_equal(env_file_parse(text, sizeof(text) - 1, &env, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),         fixture_test(test_windows),
		fixture_test(test_blanks_ahead), fixture_test(test_bad),
		fixture_test(test_no_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
