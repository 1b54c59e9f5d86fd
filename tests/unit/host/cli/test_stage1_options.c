/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/stage1_options.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "host/config/config.h"
#include "tests/support/fixture.h"

static struct stage1 make_stage1(void)
{
	struct stage1 s = { .n_options = 2 };
	strcpy(s.options[0].name, "accel");
	strcpy(s.options[1].name, "memory");
	return s;
}

/* Options as they come from the command line, checked against a stage1 of two options. */
static int check(const char *const *options, const char *program, struct run_opts *o, struct err *e)
{
	struct stage1 s = make_stage1();
	struct cli c = {
		.cmd = &cmd_run, .system_config = "", .local_config = "", .user_config = ""
	};
	struct config config;
	config_init(&config);
	c.config = &config;
	if (program)
		strcpy(s.check, program);
	run_opts_init(o);
	for (; *options; options++) {
		const char *value = strchr(*options, '=');
		assert_int_equal(
			stage1_options_take(o, *options, (size_t)(value - *options), value + 1, e),
			0);
	}
	int r = stage1_options_check(&c, o, &s, e);
	config_deinit(&config);
	return r;
}

static void test_declared(void **state)
{
	static const char *const options[] = { "memory=1Gi", "accel=tcg", "memory=", NULL };
	CLEANUP(run_opts_deinit) struct run_opts o;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(check(options, NULL, &o, &e), 0);
	assert_int_equal(o.request.stage1_options.n, 3);
	assert_string_equal(o.request.stage1_options.v[0], "--memory=1Gi");
	assert_string_equal(o.request.stage1_options.v[2], "--memory=");
}

static void test_unknown(void **state)
{
	static const struct {
		const char *option, *error;
	} cases[] = {
		{ "acel=tcg", "unknown flag: --acel (did you mean --accel?)" },
		{ "detahc=x", "unknown flag: --detahc (did you mean --detach?)" },
		{ "nope=x", "unknown flag: --nope" },
		{ "cpu=1", "--cpu must follow an image" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const options[] = { cases[i].option, NULL };
		CLEANUP(run_opts_deinit) struct run_opts o;
		struct err e = ERR_INIT;
		assert_int_equal(check(options, NULL, &o, &e), FLAG_BAD);
		assert_string_equal(e.text, cases[i].error);
	}
}

/* The stage1 looks at the options, and what it says is the error. */
static void test_asked(void **state)
{
	static const char program[] = "#!/bin/sh\n[ \"$*\" = --accel=tcg ] && exit 0\n"
				      "echo \"stage1: check: $*: no\" >&2\nexit 254\n";
	static const char *const good[] = { "accel=tcg", NULL }, *const bad[] = { "accel=x", NULL };
	CLEANUP(run_opts_deinit) struct run_opts o;
	CLEANUP(run_opts_deinit) struct run_opts other;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	fixture_write(state, "check", program, strlen(program));
	snprintf(path, sizeof(path), "%s/check", fixture_path(state));
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(check(good, path, &o, &e), 0);
	assert_int_equal(check(bad, path, &other, &e), -EINVAL);
	assert_string_equal(e.text, "--accel=x: no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_declared),
		fixture_test(test_unknown),
		fixture_test(test_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
