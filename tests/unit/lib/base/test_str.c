/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_affixes(void **state)
{
	(void)state;
	assert_true(str_starts("abc", "ab"));
	assert_true(str_starts("abc", ""));
	assert_false(str_starts("a", "ab"));
	assert_true(str_is_path_in("/dev", "/dev"));
	assert_true(str_is_path_in("/dev/", "/dev"));
	assert_true(str_is_path_in("/dev/pts/0", "/dev"));
	assert_false(str_is_path_in("/device", "/dev"));
	assert_false(str_is_path_in("/de", "/dev"));
	assert_true(str_ends("x.tar", ".tar"));
	assert_true(str_ends("x", ""));
	assert_false(str_ends("tar", ".tar"));
}

static void test_one_of(void **state)
{
	static const char *const words[] = { "a", "bc" };
	cleanup_strv struct strv list;
	(void)state;
	assert_true(str_is_one_of("bc", words, 2));
	assert_false(str_is_one_of("bc", words, 1));
	assert_false(str_is_one_of("b", words, 2));
	assert_false(str_is_one_of("", NULL, 0));
	strv_init(&list, 2);
	assert_false(strv_has(&list, "a"));
	assert_int_equal(strv_add(&list, "a"), 0);
	assert_true(strv_has(&list, "a"));
	assert_false(strv_has(&list, ""));
}

static void test_copy(void **state)
{
	(void)state;
	char dst[4] = "zzz";
	assert_int_equal(str_copy(dst, sizeof(dst), "abc"), 0);
	assert_string_equal(dst, "abc");
	assert_int_equal(str_copy(dst, sizeof(dst), "abcd"), -ENAMETOOLONG);
	assert_string_equal(dst, "");
	dst[0] = 'q';
	assert_int_equal(str_copy(dst, 0, "abcd"), -ENAMETOOLONG);
	assert_int_equal(dst[0], 'q');
}

static void test_printable(void **state)
{
	(void)state;
	assert_true(str_is_printable(" ~azAZ09", 8));
	assert_false(str_is_printable(" ~azAZ09", 7));
	assert_false(str_is_printable("", 8));
	assert_false(str_is_printable("a\n", 8));
	assert_false(str_is_printable("\x7f", 8));
	assert_false(str_is_printable("\xc3\xa4", 8));
	assert_false(str_is_printable("\x1f", 8));
}

static void test_utf8(void **state)
{
	(void)state;
	static const char *const good[] = {
		"",
		"a\x7f",
		"\xc2\x80",
		"\xdf\xbf",
		"\xe0\xa0\x80",
		"\xed\x9f\xbf",
		"\xee\x80\x80",
		"\xef\xbf\xbf",
		"\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xc2",
		"\xc2g",
		"\xe0\x9f\xbf",
		"\xe0\xa0",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\xf0\x90\x80",
		"a\xe2\x82",
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(str_is_utf8(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[16];
		assert_false(str_is_utf8(bad[i]));
		str_copy_text(text, sizeof(text), bad[i]);
		assert_true(str_is_utf8(text));
		assert_int_equal(strlen(text), strlen(bad[i]));
	}
}

static void test_copy_text(void **state)
{
	(void)state;
	char dst[4];
	str_copy_text(dst, sizeof(dst), "abc");
	assert_string_equal(dst, "abc");
	str_copy_text(dst, sizeof(dst), "abcd");
	assert_string_equal(dst, "abc");
	str_copy_text(dst, sizeof(dst), "ab\xc3\xa4");
	assert_string_equal(dst, "ab");
	str_copy_text(dst, sizeof(dst), "a\xc3\xa4z");
	assert_string_equal(dst, "a\xc3\xa4");
	str_copy_text(dst, sizeof(dst), "\xff\xc3z");
	assert_string_equal(dst, "??z");
	str_copy_text(dst, 1, "abc");
	assert_string_equal(dst, "");
}

static void test_make_printable(void **state)
{
	(void)state;
	static const char *const steering[] = {
		"\x01",         "\n",           "\x1b",         "\x7f",         "\xc2\x80",
		"\xc2\x9f",     "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
		"\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9",
	};
	/*
	 * Their neighbours: U+00A0, U+061B, U+061D, U+200D, U+2010, U+2027, U+202F, U+2065, U+206A,
	 * and others.
	 */
	static const char *const showing[] = {
		"a ~",          "\xc2\xa0",     "\xd8\x9b",     "\xd8\x9d",     "\xe2\x80\x8d",
		"\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x81\xaa",
		"\xc3\x9f",     "\xe2\x82\xac", "\xd9\x9c",     "\xe2",         "\xe2\x80",
	};
	for (size_t i = 0; i < ARRAY_SIZE(steering); i++) {
		char text[16], want[16] = "a";
		snprintf(text, sizeof(text), "a%sz", steering[i]);
		memset(want + 1, '?', strlen(steering[i]));
		strcat(want, "z");
		str_make_printable(text);
		assert_string_equal(text, want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(showing); i++) {
		char text[16];
		snprintf(text, sizeof(text), "%s", showing[i]);
		str_make_printable(text);
		assert_string_equal(text, showing[i]);
	}
}

static void test_list_limit(void **state)
{
	(void)state;
	cleanup_strv struct strv sv;
	strv_init(&sv, 2);
	assert_null(sv.v);
	assert_int_equal(strv_add(&sv, "a"), 0);
	assert_int_equal(strv_addf(&sv, "%d", 42), 0);
	assert_int_equal(strv_add(&sv, "c"), -E2BIG);
	assert_int_equal(strv_addf(&sv, "d"), -E2BIG);
	assert_int_equal(sv.n, 2);
	assert_string_equal(sv.v[0], "a");
	assert_string_equal(sv.v[1], "42");
	assert_null(sv.v[2]);
	strv_deinit(&sv);
	strv_deinit(NULL);
	assert_int_equal(sv.n, 0);
	assert_int_equal(strv_add(&sv, "again"), 0);
}

static void test_list_extend(void **state)
{
	(void)state;
	cleanup_strv struct strv from, to;
	strv_init(&from, 3);
	strv_init(&to, 3);
	assert_int_equal(strv_extend(&to, &from), 0);
	assert_int_equal(strv_add(&from, "1"), 0);
	assert_int_equal(strv_add(&from, "2"), 0);
	assert_int_equal(strv_extend(&to, &from), 0);
	assert_int_equal(strv_extend(&to, &from), -E2BIG);
	assert_int_equal(to.n, 3); /* what was added before stays */
	assert_ptr_not_equal(to.v[0], from.v[0]);
}

static void test_environment(void **state)
{
	(void)state;
	cleanup_strv struct strv env;
	strv_init(&env, 3);
	assert_null(strv_env_get(&env, "A"));
	assert_int_equal(strv_env_set(&env, "A", "1"), 0);
	assert_int_equal(strv_env_set(&env, "AB", "2"), 0);
	assert_int_equal(strv_add(&env, "A=hidden"), 0);
	assert_string_equal(strv_env_get(&env, "A"), "1");
	assert_string_equal(strv_env_get(&env, "AB"), "2");
	assert_null(strv_env_get(&env, ""));
	assert_int_equal(strv_env_set(&env, "A", "=3"), 0);
	assert_string_equal(strv_env_get(&env, "A"), "=3");
	assert_string_equal(env.v[0], "A==3");
	assert_int_equal(env.n, 3);
	assert_int_equal(strv_env_set(&env, "C", "4"), -E2BIG);
}

static int use_lists(void *ctx)
{
	(void)ctx;
	cleanup_strv struct strv a, b;
	strv_init(&a, 10);
	strv_init(&b, 10);
	int r = strv_add(&a, "one");
	if (r == 0)
		r = strv_addf(&a, "%s=%s", "two", "2");
	if (r == 0)
		r = strv_env_set(&a, "two", "3");
	if (r == 0)
		r = strv_env_set(&a, "four", "4");
	if (r == 0)
		r = strv_extend(&b, &a);
	if (r < 0)
		return r;
	return b.n == 3 && strcmp(strv_env_get(&b, "two"), "3") == 0 &&
			       strcmp(strv_env_get(&b, "four"), "4") == 0
		       ? 0
		       : 1;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(use_lists, NULL);
}

/* Names for people: UTF-8 that steers nothing. */
static void test_text(void **state)
{
	static const char *const good[] = { "a", " ~", "\xc3\xa4", "\xe3\x83\x9c",
					    "\xf0\x9f\x90\xb3" };
	static const char *const bad[] = { "",     "a\n",      "\x7f",     "\xc3",
					   "\xe4", "\xc0\x80", "\xc2\x85", "a\xe2\x80\xae" };
	char out[8];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(str_is_text(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(str_is_text(bad[i], 100));
	assert_false(str_is_text("\xc3\xa4", 1));
	str_copy_printable(out, sizeof(out), "\xc3\xa4\n\xe4\xc3\xa4\xc3\xa4");
	assert_string_equal(out, "\xc3\xa4??\xc3\xa4"); /* no room for all of the last one */
}

static void test_chars(void **state)
{
	static const char text[] = "a\xc3\xa4\xe3\x83\x9cz";
	static const size_t lens[] = { 0, 1, 3, 6, 7, 7 };
	(void)state;
	assert_int_equal(str_chars(""), 0);
	assert_int_equal(str_chars(text), 4);
	for (size_t n = 0; n < ARRAY_SIZE(lens); n++)
		assert_int_equal(str_chars_len(text, n), lens[n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_affixes),
		fixture_test(test_one_of),
		fixture_test(test_copy),
		fixture_test(test_printable),
		fixture_test(test_list_limit),
		fixture_test(test_list_extend),
		fixture_test(test_environment),
		fixture_test(test_utf8),
		fixture_test(test_copy_text),
		fixture_test(test_make_printable),
		fixture_test(test_short_of_memory),
		fixture_test(test_text),
		fixture_test(test_chars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
