/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/backend/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static struct ns_options taken(const char *name, const char *value)
{
	struct ns_options o = { 0 };
	struct err e = ERR_INIT;
	assert_int_equal(ns_options_take(&o, name, value, &e), 0);
	return o;
}

static void test_users(void **state)
{
	(void)state;
	assert_true(taken("userns", "host").users_of_host);
	assert_false(taken("userns", "auto").users_of_host);
	assert_false(taken("userns", "private").users_of_host);
}

/* At the ends of what each may be. */
static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(taken("memory", "16Mi").limits.memory_max, 16 << 20);
	assert_int_equal(taken("memory", "1Ti").limits.memory_max, INT64_C(1) << 40);
	assert_int_equal(taken("cpus", "10m").limits.cpu_millis, 10);
	assert_int_equal(taken("cpus", "1.5").limits.cpu_millis, 1500);
	assert_int_equal(taken("cpus", "1024").limits.cpu_millis, 1024000);
	assert_int_equal(taken("pids-limit", "8").limits.pids_max, 8);
	assert_int_equal(taken("pids-limit", "4194304").limits.pids_max, 4194304);
}

static void test_refused(void **state)
{
	static const struct {
		const char *name, *value, *why;
	} cases[] = {
		{ "userns", "some", "no such choice (see husk run --help)" },
		{ "userns", "", "no such choice (see husk run --help)" },
		{ "memory", "16777215", "not a size from 16Mi to 1Ti" },
		{ "memory", "1025Gi", "not a size from 16Mi to 1Ti" },
		{ "memory", "lots", "not a size from 16Mi to 1Ti" },
		{ "cpus", "9m", "not a number of processors from 10m to 1024" },
		{ "cpus", "1024.001", "not a number of processors from 10m to 1024" },
		{ "cpus", "-1", "not a number of processors from 10m to 1024" },
		{ "pids-limit", "7", "not a number from 8 to 4194304" },
		{ "pids-limit", "4194305", "not a number from 8 to 4194304" },
		{ "pids-limit", "", "not a number from 8 to 4194304" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ns_options o = { 0 };
		struct err e = ERR_INIT;
		char text[128];
		assert_int_equal(ns_options_take(&o, cases[i].name, cases[i].value, &e), -EINVAL);
		snprintf(text, sizeof(text), "--%s=%s: %s", cases[i].name, cases[i].value,
			 cases[i].why);
		assert_string_equal(e.text, text);
	}
}

/* All in the list are taken, and nothing else. */
static void test_names(void **state)
{
	struct ns_options o = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	for (const char *const *name = ns_option_names; *name; name++) {
		ns_options_take(&o, *name, "", &e);
		assert_null(strstr(e.text, "no such option"));
	}
	assert_int_equal(ns_options_take(&o, "accel", "kvm", &e), -EINVAL);
	assert_string_equal(e.text, "--accel: no such option of namespaces");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_users),
		fixture_test(test_limits),
		fixture_test(test_refused),
		fixture_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
