/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/words.h"

#include <errno.h>
#include <string.h>

#include "lib/wire/agent.h"
#include "tests/support/fixture.h"

#define HALF (AGENT_WORDS_MAX / 2)

static struct err e;

/* A text of @len times @c, valid until the next call. */
static const char *text(size_t len, char c)
{
	static char space[AGENT_STRING_MAX + 2];
	memset(space, c, len);
	space[len] = '\0';
	return space;
}

/* Adds words that take @size bytes of AGENT_WORDS_MAX, all but the last long ones. */
static void fill(struct strv *words, size_t size)
{
	while (size > 0) {
		size_t len = MIN(size, (size_t)100000) - AGENT_WORD_COST;
		if (size - len - AGENT_WORD_COST < AGENT_WORD_COST)
			len = size - AGENT_WORD_COST;
		assert_int_equal(strv_add(words, text(len, 'x')), 0);
		size -= len + AGENT_WORD_COST;
	}
}

static void test_one(void **state)
{
	(void)state;
	cleanup_strv struct strv exec, env, none;
	strv_init(&exec, 2);
	strv_init(&env, 1);
	strv_init(&none, 1);
	assert_int_equal(strv_add(&exec, "sh"), 0);
	assert_int_equal(strv_add(&exec, text(AGENT_STRING_MAX, 'x')), 0);
	assert_int_equal(words_check(&exec, &none, &e), 0);
	assert_int_equal(words_check(&none, &exec, &e), 0);
	strv_deinit(&exec);
	assert_int_equal(strv_add(&exec, "sh"), 0);
	assert_int_equal(strv_add(&exec, text(AGENT_STRING_MAX + 1, 'x')), 0);
	assert_int_equal(words_check(&exec, &none, &e), -E2BIG);
	assert_string_equal(e.text,
			    "argument 2 of the command has 131072 bytes, and Linux takes at most "
			    "131071 in one (shorten it, or hand it over in a file)");
	assert_int_equal(strv_addf(&env, "A=%s", text(AGENT_STRING_MAX - 1, 'x')), 0);
	assert_int_equal(words_check(&none, &env, &e), -E2BIG);
	assert_string_equal(
		e.text, "variable \"A\" has 131072 bytes with its name, and Linux takes at most "
			"131071 in one (shorten it, or hand it over in a file)");
}

static void test_together(void **state)
{
	(void)state;
	cleanup_strv struct strv exec, env;
	strv_init(&exec, AGENT_EXEC_MAX);
	strv_init(&env, AGENT_ENV_MAX);
	fill(&exec, HALF);
	fill(&env, AGENT_WORDS_MAX - HALF);
	assert_int_equal(agent_words_size(&exec) + agent_words_size(&env), AGENT_WORDS_MAX);
	assert_int_equal(words_check(&exec, &env, &e), 0);
	assert_int_equal(strv_add(&env, ""), 0);
	assert_int_equal(words_check(&exec, &env, &e), -E2BIG);
	assert_string_equal(
		e.text,
		"11 arguments and 12 variables have 2080777 bytes together, counting 9 more for "
		"each, and Linux takes at most 2080768 (give fewer or shorter ones, or hand them "
		"over in a file)");
}

/* What takes most bytes of a message is not what takes most of a program's. */
static void test_message(void **state)
{
	(void)state;
	cleanup_strv struct strv quotes, controls;
	const struct strv *const lists[] = { &quotes, &controls };
	const size_t each = 100000, of_quotes = 2 * each + 3, rest = AGENT_WORDS_ENCODED_MAX / 2;
	strv_init(&quotes, AGENT_EXEC_MAX);
	strv_init(&controls, AGENT_EXEC_MAX);
	for (size_t i = 0; i < rest / of_quotes; i++)
		assert_int_equal(strv_add(&quotes, text(each, '"')), 0);
	size_t left = AGENT_WORDS_ENCODED_MAX - rest / of_quotes * of_quotes;
	for (; left > 6 * each; left -= 6 * each + 3)
		assert_int_equal(strv_add(&controls, text(each, '\1')), 0);
	for (; left > each; left -= each)
		assert_int_equal(strv_add(&controls, text(each - 3, 'x')), 0);
	assert_int_equal(strv_add(&controls, text(left - 3, 'x')), 0);
	assert_int_equal(words_check_message(lists, 2, &e), 0);
	assert_int_equal(strv_add(&controls, ""), 0);
	assert_int_equal(words_check_message(lists, 2, &e), -E2BIG);
	assert_non_null(strstr(e.text, "have 4194307 bytes together as JSON"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_one),
		fixture_test(test_together),
		fixture_test(test_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
