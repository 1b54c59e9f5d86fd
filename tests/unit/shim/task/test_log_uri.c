/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/log_uri.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		int code;
		enum log_kind kind;
		const char *path, *words;
	} cases[] = {
		{ "/run/fifo", 0, LOG_FIFO, "/run/fifo", "" },
		{ "relative", 0, LOG_FIFO, "relative", "" },
		{ "fifo:///run/fifo", 0, LOG_FIFO, "/run/fifo", "" },
		{ "file:///var/log/a%20b", 0, LOG_FILE, "/var/log/a b", "" },
		{ "file:///a+b%2Bc%2fd#e", 0, LOG_FILE, "/a+b+c/d", "" },
		{ "binary:///bin/x", 0, LOG_BINARY, "/bin/x", "" },
		{ "binary:///bin/x?", 0, LOG_BINARY, "/bin/x", "" },
		{ "binary:///bin/x?a=b", 0, LOG_BINARY, "/bin/x", "a|b|" },
		{ "binary:///bin/x?a=b=c&d&&e=", 0, LOG_BINARY, "/bin/x", "a|b=c|d|e|" },
		{ "binary:///bin/x?a+b=%26%3d", 0, LOG_BINARY, "/bin/x", "a b|&=|" },
		{ "binary://bin/x", -EINVAL, LOG_BINARY, "", "" },
		{ "file://", -EINVAL, LOG_FILE, "", "" },
		{ "file:///a%", -EINVAL, LOG_FILE, "", "" },
		{ "file:///a%4", -EINVAL, LOG_FILE, "", "" },
		{ "file:///a%zz", -EINVAL, LOG_FILE, "", "" },
		{ "file:///a%00b", -EINVAL, LOG_FILE, "", "" },
		{ "binary:///a?b=%00", -EINVAL, LOG_FILE, "", "" },
		{ "npipe:///a", -EOPNOTSUPP, LOG_FILE, "", "" },
		{ "://", -EOPNOTSUPP, LOG_FILE, "", "" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(log_uri_deinit) struct log_uri u;
		struct err e = ERR_INIT;
		char words[256] = "";
		int r = log_uri_parse(cases[i].text, &u, &e);
		if (r != cases[i].code)
			fail_msg("%s: %d \"%s\"", cases[i].text, r, e.text);
		if (r < 0)
			continue;
		for (size_t k = 0; k < u.words.n; k++)
			snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s|",
				 u.words.v[k]);
		assert_int_equal(u.kind, cases[i].kind);
		assert_string_equal(u.path, cases[i].path);
		assert_string_equal(words, cases[i].words);
	}
}

static void test_limits(void **state)
{
	char text[PATH_MAX + 64];
	(void)state;
	for (size_t len = PATH_MAX - 1; len <= PATH_MAX; len++) {
		CLEANUP(log_uri_deinit) struct log_uri u;
		struct err e = ERR_INIT;
		strcpy(text, "file://");
		memset(text + 7, '/', len);
		text[7 + len] = '\0';
		assert_int_equal(log_uri_parse(text, &u, &e), len < PATH_MAX ? 0 : -E2BIG);
	}
	for (size_t n = LOG_URI_WORDS_MAX; n <= LOG_URI_WORDS_MAX + 1; n++) {
		CLEANUP(log_uri_deinit) struct log_uri u;
		struct err e = ERR_INIT;
		strcpy(text, "binary:///x?");
		for (size_t i = 0; i < n; i++)
			strcat(text, "a&");
		assert_int_equal(log_uri_parse(text, &u, &e), n > LOG_URI_WORDS_MAX ? -E2BIG : 0);
	}
}

static int parse(void *ctx)
{
	CLEANUP(log_uri_deinit) struct log_uri u;
	struct err e = ERR_INIT;
	(void)ctx;
	return log_uri_parse("binary:///x?a=b&c", &u, &e);
}

static void test_allocations(void **state)
{
	(void)state;
	for_each_failing_alloc(parse, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_kinds),
		fixture_test(test_limits),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
