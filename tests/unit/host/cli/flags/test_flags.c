/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/flags.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

struct opts {
	bool loud;
	const char *file;
	const char *net;
	struct strv many;
};

static int set_even(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)opts;
	return strlen(value) % 2 == 0 ? 0 : err_set(e, -EINVAL, "--%s: odd", f->name);
}

static const struct flag flags[] = {
	FLAG_SWITCH("loud", struct opts, loud, "make noise"),
	FLAG_STRING("file", "FILE", struct opts, file, "a file"),
	{ .name = "net",
	  .arg = "NET",
	  .bare = "default",
	  .set = flag_set_string,
	  .offset = offsetof(struct opts, net),
	  .help = "a net" },
	{ .name = "many",
	  .arg = "X",
	  .set = flag_add_string,
	  .offset = offsetof(struct opts, many),
	  .help = "several" },
	{ .name = "even", .arg = "X", .set = set_even, .help = "even length" },
};

#define WORDS_MAX 16 /* the longest line below has 13 */

/* A line split at blanks into an argv. */
struct words {
	char text[128];
	char *argv[WORDS_MAX + 1];
};

/* Parses the words of @line; @operands gets the rest. The words must outlive the options. */
static int parse(struct opts *o, struct words *w, const char *line, struct strv *operands,
		 struct err *e)
{
	const struct flag_set set = { .flags = flags, .n = ARRAY_SIZE(flags), .opts = o };
	size_t n = 0;
	memset(w, 0, sizeof(*w));
	snprintf(w->text, sizeof(w->text), "%s", line);
	for (char *rest = w->text, *word; n < WORDS_MAX && (word = strsep(&rest, " "));)
		w->argv[n++] = word;
	return flags_parse(&set, 1, w->argv, operands, e);
}

static void test_values(void **state)
{
	(void)state;
	struct opts o = { 0 };
	struct err e = ERR_INIT;
	cleanup_strv struct strv operands;
	strv_init(&operands, 8);
	strv_init(&o.many, 2);
	struct words w;
	assert_int_equal(parse(&o, &w,
			       "a --loud b --file --x --net c --many=1 --many 2 -- --loud=false --",
			       &operands, &e),
			 0);
	assert_true(o.loud);
	assert_string_equal(o.file, "--x");
	assert_string_equal(o.net, "default");
	assert_int_equal(o.many.n, 2);
	assert_int_equal(operands.n, 5);
	assert_string_equal(operands.v[2], "c");
	assert_string_equal(operands.v[3], "--loud=false");
	assert_string_equal(operands.v[4], "--");
	strv_deinit(&o.many);
}

static void test_switch_words(void **state)
{
	static const struct {
		const char *arg;
		bool before, after;
	} cases[] = {
		{ "--loud", false, true },       { "--loud=true", false, true },
		{ "--loud=1", false, true },     { "--loud=T", false, true },
		{ "--loud=false", true, false }, { "--loud=F", true, false },
		{ "--loud=0", true, false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct opts o = { .loud = cases[i].before };
		struct err e = ERR_INIT;
		struct words w;
		cleanup_strv struct strv operands;
		strv_init(&operands, 1);
		assert_int_equal(parse(&o, &w, cases[i].arg, &operands, &e), 0);
		assert_int_equal(o.loud, cases[i].after);
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *arg;
		const char *error;
	} cases[] = {
		{ "--nope", "unknown flag: --nope" },
		{ "--nope=x", "unknown flag: --nope" },
		{ "--fil", "unknown flag: --fil (did you mean --file?)" },
		{ "--files", "unknown flag: --files (did you mean --file?)" },
		{ "--=x", "unknown flag: --" },
		{ "---", "unknown flag: ---" },
		{ "-l", "unknown shorthand flag: -l (flags are long)" },
		{ "--file", "flag needs an argument: --file" },
		{ "--loud=maybe", "invalid argument \"maybe\" for --loud: not true or false" },
		{ "--loud=", "invalid argument \"\" for --loud: not true or false" },
		{ "--even=abc", "--even: odd" },
		{ "--n\x1b[1m", "unknown flag: --n?[1m" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct opts o = { 0 };
		struct err e = ERR_INIT;
		struct words w;
		cleanup_strv struct strv operands;
		strv_init(&operands, 1);
		assert_int_equal(parse(&o, &w, cases[i].arg, &operands, &e), FLAG_BAD);
		assert_string_equal(e.text, cases[i].error);
	}
}

static void test_limits(void **state)
{
	(void)state;
	struct opts o = { 0 };
	struct err e = ERR_INIT;
	cleanup_strv struct strv operands;
	struct words w;
	strv_init(&operands, 2);
	strv_init(&o.many, 1);
	assert_int_equal(parse(&o, &w, "a b --many=1", &operands, &e), 0);
	assert_int_equal(parse(&o, &w, "c", &operands, &e), -E2BIG);
	assert_int_equal(parse(&o, &w, "--many=2", &operands, &e), FLAG_BAD);
	assert_string_equal(e.text, "--many: at most 1 values: Argument list too long");
	strv_deinit(&o.many);
}

static void test_is_flag(void **state)
{
	(void)state;
	assert_true(flag_is_flag("--x"));
	assert_true(flag_is_flag("-x"));
	assert_true(flag_is_flag("---"));
	assert_false(flag_is_flag("-"));
	assert_false(flag_is_flag("--"));
	assert_false(flag_is_flag(""));
	assert_false(flag_is_flag("x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_values),  fixture_test(test_switch_words),
		fixture_test(test_errors),  fixture_test(test_limits),
		fixture_test(test_is_flag),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
