/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/idmap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static void test_has(void **state)
{
	static const struct {
		const char *map;
		uint32_t id;
		bool has;
		uint32_t last;
	} cases[] = {
		{ "         0          0 4294967295\n", 4294967294U, true, 4294967294U },
		{ "         0          0 4294967295\n", 4294967295U, false, 4294967294U },
		{ "0 1879048192 65536\n", 0, true, 65535 },
		{ "0 1879048192 65536\n", 65535, true, 65535 },
		{ "0 1879048192 65536\n", 65536, false, 65535 },
		{ "0 1000 1\n1 100000 65535\n", 1, true, 65535 },
		{ "0 1000 1\n1 100000 65535\n", 65536, false, 65535 },
		{ "1 100000 65535\n70000 5 1\n", 70000, true, 70000 },
		{ "5 1 10\n", 4, false, 14 },
		{ "", 1, false, 0 },
		{ "0 0\n", 0, false, 0 },
		{ "x", 0, false, 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t last = 77;
		assert_int_equal(idmap_has(cases[i].map, cases[i].id, &last), cases[i].has);
		assert_int_equal(last, cases[i].last);
	}
}

/* In a namespace without a map: nobody but root, who is not looked up. */
static int look_in_namespace(void)
{
	struct fault f = { 0 };
	const gid_t groups[] = { 0, 7 };
	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	if (idmap_check_user(0, &f) != 0 || idmap_check_groups(groups, 1, &f) != 0)
		return 1;
	/* An empty map is read as none: the kernel has the last word. */
	return idmap_check_user(5, &f) == 0 ? 0 : 2;
}

static void test_here(void **state)
{
	struct fault f = { 0 };
	const gid_t groups[] = { 0, 1, 4294967294U };
	int status;
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(idmap_check_user(70000, &f), 0);
	assert_int_equal(idmap_check_groups(groups, 3, &f), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(look_in_namespace());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != 77)
		assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_has),
		fixture_test(test_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
