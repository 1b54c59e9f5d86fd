/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/args.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/fixture.h"

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Of arguments that are constants. */
static int parse(const char *const *args, struct shim_args *ret, struct err *e)
{
	return shim_args_parse((char *const *)(uintptr_t)args, ret, e);
}

/* As containerd calls. */
static void test_calls(void **state)
{
	struct shim_args a;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(
		parse(ARGS("-namespace", "k8s.io", "-address", "/run/c.sock", "-publish-binary",
			   "/usr/bin/containerd", "-id", "x", "-debug", "start"),
		      &a, &e),
		0);
	assert_int_equal(a.action, SHIM_START);
	assert_string_equal(a.ns, "k8s.io");
	assert_string_equal(a.address, "/run/c.sock");
	assert_string_equal(a.id, "x");
	assert_string_equal(a.bundle, "");
	assert_int_equal(parse(ARGS("--namespace=n", "-id=y=z", "-bundle", "/b", "delete"), &a, &e),
			 0);
	assert_int_equal(a.action, SHIM_DELETE);
	assert_string_equal(a.id, "y=z");
	assert_string_equal(a.bundle, "/b");
	assert_int_equal(parse(ARGS("-v"), &a, &e), 0);
	assert_int_equal(a.action, SHIM_VERSION);
}

static void test_wrong(void **state)
{
	static const char *const cases[][6] = {
		{ NULL },
		{ "-namespace", "n", "-id", "x", NULL },
		{ "-namespace", "n", "-id", "x", "stop", NULL },
		{ "-namespace", "n", "start", NULL },
		{ "-id", "x", "start", NULL },
		{ "-id", NULL },
		{ "-nosuch", "n", "start", NULL },
		{ "-", "start", NULL },
		{ "start", "-id", "x", NULL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shim_args a;
		struct err e = ERR_INIT;
		if (parse(cases[i], &a, &e) != -EINVAL || !e.text[0])
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_calls),
		fixture_test(test_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
