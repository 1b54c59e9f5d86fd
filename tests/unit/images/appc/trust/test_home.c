/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/home.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "images/appc/trust/keystore.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_made_and_removed(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	struct gpg_home home = GPG_HOME_INIT;
	char path[PATH_MAX], start[PATH_MAX];
	assert_int_equal(gpg_home_make(fixture_path(state), &home, &e), 0);
	snprintf(start, sizeof(start), "%.*s/" TRUST_HOME_PREFIX, PATH_MAX - 16,
		 fixture_path(state));
	assert_true(str_starts(home.path, start));
	assert_int_equal(stat(home.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	memcpy(path, home.path, sizeof(path));
	/* Whoever cleans up sees that it is used. */
	cleanup_fd int cleaner = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_try_exclusive(cleaner), LOCK_TAKEN);
	/* Whatever gpg put there goes, too. */
	snprintf(start, sizeof(start), "%.*s/crls.d", PATH_MAX - 16, home.path);
	assert_int_equal(mkdir(start, 0700), 0);
	gpg_home_remove(&home);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(lock_try_exclusive(cleaner), 0);
	gpg_home_remove(&home); /* nothing */
}

static void test_failures(void **state)
{
	struct err e = ERR_INIT;
	struct gpg_home home = GPG_HOME_INIT;
	char tmp[PATH_MAX], want[PATH_MAX * 2], path[PATH_MAX];
	snprintf(tmp, sizeof(tmp), "%.*s/none", PATH_MAX - 16, fixture_path(state));
	snprintf(want, sizeof(want),
		 "cannot make a temporary directory in \"%s\": No such file or directory", tmp);
	assert_int_equal(gpg_home_make(tmp, &home, &e), -ENOENT);
	assert_string_equal(e.text, want);
	memset(tmp, 'x', sizeof(tmp) - 1);
	tmp[sizeof(tmp) - 1] = '\0';
	assert_int_equal(gpg_home_make(tmp, &home, &e), -ENAMETOOLONG);
	str_copy(path, sizeof(path), getenv("PATH"));
	setenv("PATH", fixture_path(state), 1);
	assert_int_equal(gpg_home_make(fixture_path(state), &home, &e), TRUST_E_NO_GPG);
	setenv("PATH", path, 1);
	assert_string_equal(e.text, "no program gpg in PATH, which checks keys and signatures "
				    "(install gpg)");
	assert_string_equal(home.path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_made_and_removed),
		fixture_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
