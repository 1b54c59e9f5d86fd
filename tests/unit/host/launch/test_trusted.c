/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/trusted.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static void make(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "a", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "a/b", 0755), 0);
	fixture_write(state, "a/b/run", "", 0);
	assert_int_equal(fchmodat(fixture_dir(state), "a/b/run", 0755, 0), 0);
}

/* The manifest says what is executed, so it counts as much as the programs, each of them. */
static void test_stage1(void **state)
{
	static struct stage1 s;
	struct err e = ERR_INIT;
	make(state);
	snprintf(s.dir, sizeof(s.dir), "%s/a", fixture_path(state));
	assert_int_equal(trusted_stage1(&s, geteuid(), &e), -ENOENT);
	fixture_write(state, "a/manifest", "", 0);
	assert_int_equal(fchmodat(fixture_dir(state), "a/manifest", 0644, 0), 0);
	assert_int_equal(trusted_stage1(&s, geteuid(), &e), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "a/b/run", 0777, 0), 0);
	for (size_t i = 0; i < stage1_n_entrypoints; i++) {
		char *program = (char *)&s + stage1_entrypoints[i].at;
		snprintf(program, PATH_MAX, "%s/a/b/run", fixture_path(state));
		assert_int_equal(trusted_stage1(&s, geteuid(), &e), -EPERM);
		program[0] = '\0';
	}
	assert_int_equal(fchmodat(fixture_dir(state), "a/manifest", 0664, 0), 0);
	assert_int_equal(trusted_stage1(&s, geteuid(), &e), -EPERM);
	assert_non_null(strstr(e.text, "/a/manifest\" can be changed by others"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_stage1) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
