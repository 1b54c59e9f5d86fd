#include "lib/wire/rlimit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void test_good(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct rlimit_spec want;
	} cases[] = {
		{ "nofile=1024:4096", { RLIMIT_NOFILE, 1024, 4096 } },
		{ "nofile=0", { RLIMIT_NOFILE, 0, 0 } },
		{ "core=0:unlimited", { RLIMIT_CORE, 0, RLIM_INFINITY } },
		{ "stack=unlimited", { RLIMIT_STACK, RLIM_INFINITY, RLIM_INFINITY } },
		{ "as=18446744073709551614", { RLIMIT_AS, UINT64_MAX - 1, UINT64_MAX - 1 } },
		{ "rttime=7:7", { RLIMIT_RTTIME, 7, 7 } },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rlimit_spec got = { -1, 1, 1 };
		if (rlimit_parse(cases[i].text, &got) != 0)
			fail_msg("%s", cases[i].text);
		assert_int_equal(got.resource, cases[i].want.resource);
		assert_true(got.soft == cases[i].want.soft);
		assert_true(got.hard == cases[i].want.hard);
	}
}

/* Every name that the header promises is another resource. */
static void test_names(void **state)
{
	(void)state;
	static const char *const names[] = { "as",     "core",       "cpu",    "data",
					     "fsize",  "locks",      "nice",   "rss",
					     "nproc",  "sigpending", "stack",  "memlock",
					     "nofile", "rtprio",     "rttime", "msgqueue" };
	unsigned seen = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char text[32];
		struct rlimit_spec got;
		snprintf(text, sizeof(text), "%s=1", names[i]);
		assert_int_equal(rlimit_parse(text, &got), 0);
		assert_int_equal(seen & (1U << got.resource), 0);
		seen |= 1U << got.resource;
	}
	assert_int_equal(seen, (1U << RLIMIT_NLIMITS) - 1);
}

static void test_bad(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		"nofile",
		"nofile=",
		"=1",
		"NOFILE=1",
		"nofil=1",
		"nofilex=1",
		"nofile=-1",
		"nofile=1:",
		"nofile=:1",
		"nofile=2:1",
		"nofile=1:2:3",
		"nofile=1x",
		"nofile= 1",
		"nofile=unlimited:1",
		"nofile=18446744073709551615",
		"nofile=184467440737095516140",
		"nofile=infinity",
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rlimit_spec got = { .resource = 4711 };
		if (rlimit_parse(cases[i], &got) != -EINVAL)
			fail_msg("%s", cases[i]);
		assert_int_equal(got.resource, 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),
		fixture_test(test_names),
		fixture_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
