/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/support/cmocka.h"

static const char *const suites[] = { "start", "app", "memory", NULL };

#define READ(o, e, ...) \
	options_read((char *const[]){ word("husk-bench"), __VA_ARGS__, NULL }, suites, o, e)

/* A word as main() has it. */
static char *word(const char *text)
{
	static char words[16][64];
	static size_t n;
	char *to = words[n++ % ARRAY_SIZE(words)];
	assert_int_equal(str_copy(to, sizeof(words[0]), text), 0);
	return to;
}

static void test_defaults(void **state)
{
	struct options o;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(READ(&o, &e, NULL), 0);
	assert_int_equal(o.n_stage1s, 2);
	assert_int_equal(o.n_contenders, 7);
	assert_string_equal(o.contenders[0], "kvm");
	assert_string_equal(o.contenders[2], "runc");
	assert_false(o.peers_named);
	assert_int_equal(o.rounds, 5);
	assert_int_equal(o.pods, 50);
	assert_true(options_want(&o, "start") && options_want(&o, "memory"));
}

static void test_all(void **state)
{
	struct options o;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(READ(&o, &e, word("memory"), word("--stage1=ns"), word("--peer"),
			      word("crun,runc"), word("--rounds=100"), word("--pods=200"),
			      word("--image=x"), word("--out=y"), word("start")),
			 0);
	assert_int_equal(o.n_stage1s, 1);
	assert_int_equal(o.n_contenders, 3);
	assert_string_equal(o.contenders[0], "ns");
	assert_string_equal(o.contenders[1], "crun"); /* columns are in the user's order */
	assert_true(o.peers_named);
	assert_int_equal(o.rounds, RESULTS_ROUNDS_MAX);
	assert_int_equal(o.pods, OPTIONS_PODS_MAX);
	assert_string_equal(o.image, "x");
	assert_string_equal(o.out, "y");
	assert_true(options_want(&o, "start") && options_want(&o, "memory"));
	assert_false(options_want(&o, "app"));
	assert_int_equal(READ(&o, &e, word("--help")), 0);
	assert_true(o.help);
	assert_int_equal(READ(&o, &e, word("--stage1="), word("--peer=runc")), 0);
	assert_int_equal(o.n_contenders, 1);
}

static void test_errors(void **state)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "--peer=docker",
		  "peer \"docker\": unknown (there are runc, crun, podman, runsc, host)" },
		{ "--stage1=kvm,xen", "stage1 \"xen\": unknown (there are kvm, ns)" },
		{ "--stage1=kv", "stage1 \"kv\": unknown (there are kvm, ns)" },
		{ "--peer=runc,,crun",
		  "peer \"\": unknown (there are runc, crun, podman, runsc, host)" },
		{ "--peer=runc,runc", "peer \"runc\": named twice" },
		{ "--rounds=0", "--rounds=0: not a number from 1 to 100" },
		{ "--rounds=101", "--rounds=101: not a number from 1 to 100" },
		{ "--rounds=-1", "--rounds=-1: not a number from 1 to 100" },
		{ "--pods=201", "--pods=201: not a number from 1 to 200" },
		{ "--what", "--what: no such option (see husk-bench --help)" },
		{ "--image", "--image: needs a value (see husk-bench --help)" },
		{ "speed", "suite \"speed\": unknown (there are start, app, memory)" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options o;
		struct err e = ERR_INIT;
		assert_int_equal(READ(&o, &e, word(cases[i].word)), -EINVAL);
		assert_string_equal(e.text, cases[i].text);
	}
	struct options o;
	struct err e = ERR_INIT;
	assert_int_equal(READ(&o, &e, word("app"), word("app")), -EINVAL);
	assert_string_equal(e.text, "suite \"app\": named twice");
	assert_int_equal(READ(&o, &e, word("--stage1="), word("--peer=")), -EINVAL);
	assert_string_equal(e.text, "nothing to measure: neither a stage1 nor a peer is named");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
