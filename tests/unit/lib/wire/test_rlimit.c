/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/rlimit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "tests/support/fixture.h"

static void expect(const char *text, int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit_spec spec;
	assert_int_equal(rlimit_parse(text, &spec), 0);
	assert_int_equal(spec.resource, resource);
	assert_int_equal(spec.soft, soft);
	assert_int_equal(spec.hard, hard);
}

static void expect_error(const char *text, int error)
{
	struct rlimit_spec spec = { .resource = 99 };
	assert_int_equal(rlimit_parse(text, &spec), error);
	assert_int_equal(spec.resource, 99);
}

static void test_values(void **state)
{
	(void)state;
	expect("nofile=1024:4096", RLIMIT_NOFILE, 1024, 4096);
	expect("core=0", RLIMIT_CORE, 0, 0);
	expect("stack=8388608:unlimited", RLIMIT_STACK, 8388608, RLIM_INFINITY);
	expect("memlock=unlimited", RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
	expect("as=unlimited:unlimited", RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY);
	expect("cpu=7:7", RLIMIT_CPU, 7, 7);
	expect("fsize=18446744073709551614", RLIMIT_FSIZE, UINT64_MAX - 1, UINT64_MAX - 1);
}

/* As many names as Linux has limits, with its numbers, and the way back. */
static void test_names(void **state)
{
	(void)state;
	char text[32];
	expect("as=1", RLIMIT_AS, 1, 1);
	expect("data=1", RLIMIT_DATA, 1, 1);
	expect("locks=1", RLIMIT_LOCKS, 1, 1);
	expect("msgqueue=1", RLIMIT_MSGQUEUE, 1, 1);
	expect("nice=1", RLIMIT_NICE, 1, 1);
	expect("nproc=1", RLIMIT_NPROC, 1, 1);
	expect("rss=1", RLIMIT_RSS, 1, 1);
	expect("rtprio=1", RLIMIT_RTPRIO, 1, 1);
	expect("rttime=1", RLIMIT_RTTIME, 1, 1);
	expect("sigpending=1", RLIMIT_SIGPENDING, 1, 1);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		const char *name = rlimit_name(i);
		assert_non_null(name);
		snprintf(text, sizeof(text), "%s=1:2", name);
		expect(text, i, 1, 2);
	}
	assert_null(rlimit_name(RLIM_NLIMITS));
	assert_null(rlimit_name(-1));
}

static void test_errors(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",          "nofile",    "=1",           "nofile=",   "nofile=:",
		"nofile=1:", "nofile=:1", "nofile=1:2:3", "nofile=-1", "nofile= 1",
		"NOFILE=1",  "nofil=1",   "nofiles=1",    "nofile=1k", "nofile=1:infinity",
		"nofile=a",  "nofile=1 ", "nofile=0x1",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_error(bad[i], -EINVAL);
	expect_error("nofile=2:1", -ERANGE);
	expect_error("nofile=unlimited:1", -ERANGE);
	expect_error("nofile=18446744073709551615", -ERANGE);
	expect_error("nofile=1:18446744073709551616", -ERANGE);
	expect_error("nofile=100000000000000000000000000000000000000", -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_values),
		fixture_test(test_names),
		fixture_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
