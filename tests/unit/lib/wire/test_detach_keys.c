/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/detach_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"

static struct detach_keys parsed(const char *text)
{
	struct detach_keys k;
	assert_int_equal(detach_keys_parse(text, &k), 0);
	return k;
}

static void test_grammar(void **state)
{
	(void)state;
	static const struct {
		const char *text, *keys;
		size_t n;
	} good[] = {
		{ "", "", 0 },
		{ DETACH_KEYS_DEFAULT, "\x10\x11", 2 },
		{ "ctrl-@,ctrl-a,ctrl-z", "\0\x01\x1a", 3 },
		{ "ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_", "\x1b\x1c\x1d\x1e\x1f", 5 },
		{ "a,Z,~,!,DEL", "aZ~!\x7f", 5 },
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct detach_keys k = parsed(good[i].text);
		assert_int_equal(k.n, good[i].n);
		assert_int_equal(k.matched, 0);
		assert_memory_equal(k.key, good[i].keys, k.n);
	}
	static const char *const bad[] = {
		",",         "a,",     ",a", "ab",   "ctrl-", "ctrl-A", "ctrl-ab",       "ctrl-`",
		"ctrl-{",    "Ctrl-a", " ",  "a, b", "\x7f",  "\x80",   "ctrl-p ctrl-q", "ctrl-\n",
		"ctrl-p,,q", "del"
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct detach_keys k;
		assert_int_equal(detach_keys_parse(bad[i], &k), -EINVAL);
	}
}

static void test_most_keys(void **state)
{
	(void)state;
	char text[2 * DETACH_KEYS_MAX + 3] = "";
	for (int i = 0; i < DETACH_KEYS_MAX; i++)
		strcat(text, i == 0 ? "x" : ",x");
	struct detach_keys k = parsed(text);
	assert_int_equal(k.n, DETACH_KEYS_MAX);
	strcat(text, ",x");
	assert_int_equal(detach_keys_parse(text, &k), -E2BIG);
	assert_int_equal(k.n, DETACH_KEYS_MAX); /* untouched */
}

/* Types @in in pieces of @piece bytes; what goes on must be @want. */
static void types(const char *keys, const char *in, size_t piece, const char *want, bool leaves)
{
	struct detach_keys k = parsed(keys);
	char got[256], out[256];
	size_t n = 0;
	bool left = false;
	for (size_t at = 0, len = strlen(in); at < len && !left; at += piece) {
		size_t this = len - at < piece ? len - at : piece, more;
		left = detach_keys_feed(&k, in + at, this, out, &more);
		assert_true(more <= this + DETACH_KEYS_MAX - 1);
		memcpy(got + n, out, more);
		n += more;
	}
	assert_int_equal(left, leaves);
	assert_int_equal(n, strlen(want));
	assert_memory_equal(got, want, n);
}

static void test_typing(void **state)
{
	(void)state;
	static const struct {
		const char *keys, *in, *want;
		bool leaves;
	} samples[] = {
		{ "", "a\x10\x11z", "a\x10\x11z", false },
		{ "ctrl-p,ctrl-q", "", "", false },
		{ "ctrl-p,ctrl-q", "\x10\x11", "", true },
		{ "ctrl-p,ctrl-q",
		  "ls\r\x10\x11"
		  "dropped",
		  "ls\r", true },
		{ "ctrl-p,ctrl-q", "\x10", "", false }, /* held back */
		{ "ctrl-p,ctrl-q", "\x10x\x11", "\x10x\x11", false },
		{ "ctrl-p,ctrl-q", "\x10\x10\x11", "\x10", true },
		{ "ctrl-p,ctrl-q", "\x11\x10\x10x", "\x11\x10\x10x", false },
		{ "a", "xay", "x", true },
		{ "a,a,b", "aaab", "a", true },
		{ "a,a,b", "aaac", "aaac", false },
		{ "a,b,a,c", "ababac", "ab", true },
		{ "a,b,a,b,c", "abababxababc", "abababx", true },
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (size_t piece = 1; piece < 16; piece++)
			types(samples[i].keys, samples[i].in, piece, samples[i].want,
			      samples[i].leaves);
}

/* All that was held back goes on with the key that ends it, in place. */
static void test_most_in_place(void **state)
{
	(void)state;
	char text[2 * DETACH_KEYS_MAX] = "";
	for (int i = 0; i < DETACH_KEYS_MAX; i++)
		strcat(text, i == 0 ? "x" : i == DETACH_KEYS_MAX - 1 ? ",z" : ",x");
	struct detach_keys k = parsed(text);
	char mem[DETACH_KEYS_MAX + 8];
	char *in = mem + DETACH_KEYS_MAX;
	size_t n;
	memset(in, 'x', 8);
	assert_false(detach_keys_feed(&k, in, 8, mem, &n));
	assert_int_equal(n, 0);
	memset(in, 'x', 7);
	assert_false(detach_keys_feed(&k, in, 7, mem, &n));
	assert_int_equal(n, 0);
	assert_int_equal(k.matched, DETACH_KEYS_MAX - 1);
	memcpy(in, "yesterda", 8);
	assert_false(detach_keys_feed(&k, in, 8, mem, &n));
	assert_int_equal(n, DETACH_KEYS_MAX - 1 + 8);
	assert_memory_equal(mem, "xxxxxxxxxxxxxxxyesterda", n);
}

/*
 * Whatever is typed: what goes on is what was typed, up to the first place where the sequence
 * stands.
 */
static void test_any_typing(void **state)
{
	(void)state;
	unsigned seed = 1;
	for (int round = 0; round < 20000; round++) {
		char in[25] = "", want[25], keys[12] = "", plain[6] = "";
		size_t n = 1 + (size_t)rand_r(&seed) % 5;
		for (size_t i = 0; i < n; i++) {
			plain[i] = (char)('a' + rand_r(&seed) % 2);
			keys[2 * i] = plain[i];
			keys[2 * i + 1] = i + 1 < n ? ',' : '\0';
		}
		for (size_t i = 0; i < sizeof(in) - 2; i++)
			in[i] = (char)('a' + rand_r(&seed) % 2);
		in[sizeof(in) - 2] = '.'; /* lets go of what is held back */
		strcpy(want, in);
		char *found = strstr(want, plain);
		if (found)
			*found = '\0';
		types(keys, in, 1 + (size_t)rand_r(&seed) % 25, want, found != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_grammar),    fixture_test(test_most_keys),
		fixture_test(test_typing),     fixture_test(test_most_in_place),
		fixture_test(test_any_typing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
