/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/words.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/agent.h"

#define REMEDY "shorten it, or hand it over in a file"

static int check_argument(const char *word, size_t number, struct err *e)
{
	size_t len = strlen(word);
	if (len <= AGENT_STRING_MAX)
		return 0;
	return err_set(e, -E2BIG,
		       "argument %zu of the command has %zu bytes, and Linux takes at most %d in "
		       "one (" REMEDY ")",
		       number, len, AGENT_STRING_MAX);
}

static int check_variable(const char *word, struct err *e)
{
	size_t len = strlen(word);
	if (len <= AGENT_STRING_MAX)
		return 0;
	return err_set(e, -E2BIG,
		       "variable \"%.*s\" has %zu bytes with its name, and Linux takes at most %d "
		       "in one (" REMEDY ")",
		       (int)MIN(strcspn(word, "="), (size_t)80), word, len, AGENT_STRING_MAX);
}

int words_check(const struct strv *exec, const struct strv *env, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < exec->n; i++)
		r = check_argument(exec->v[i], i + 1, e);
	for (size_t i = 0; r == 0 && i < env->n; i++)
		r = check_variable(env->v[i], e);
	if (r < 0)
		return r;
	size_t size = agent_words_size(exec) + agent_words_size(env);
	if (size <= AGENT_WORDS_MAX)
		return 0;
	return err_set(e, -E2BIG,
		       "%zu arguments and %zu variables have %zu bytes together, counting %d more "
		       "for each, and Linux takes at most %zu (give fewer or shorter ones, or hand "
		       "them over in a file)",
		       exec->n, env->n, size, AGENT_WORD_COST, AGENT_WORDS_MAX);
}

int words_check_message(const struct strv *const *lists, size_t n, struct err *e)
{
	size_t size = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < lists[i]->n; k++)
			size += json_text_len(lists[i]->v[k]) + strlen(",");
	if (size <= AGENT_WORDS_ENCODED_MAX)
		return 0;
	return err_set(
		e, -E2BIG,
		"arguments and environment have %zu bytes together as JSON, where quotes and "
		"backslashes count twice and control characters up to six times, and at "
		"most %zu fit into a message (give fewer or shorter ones, or hand them over "
		"in a file)",
		size, AGENT_WORDS_ENCODED_MAX);
}
