/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/backend/data_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

/* Makes the fixture's directory a tmpfs that nobody else sees, and goes there. */
static void enter_tmpfs(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", fixture_path(state), "tmpfs", 0, NULL), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
}

static void leave_tmpfs(void **state)
{
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(umount2(fixture_path(state), MNT_DETACH), 0);
}

static int count_entries(void)
{
	DIR *dir = opendir(".");
	int n = 0;
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void test_good(void **state)
{
	struct err e = ERR_INIT;
	enter_tmpfs(state);
	if (data_dir_check(&e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(count_entries(), 0);
	leave_tmpfs(state);
}

/* As the data directory is in a container. */
static void test_overlay(void **state)
{
	struct err e = ERR_INIT;
	enter_tmpfs(state);
	assert_int_equal(mkdir("l", 0700) + mkdir("u", 0700) + mkdir("w", 0700) + mkdir("o", 0700),
			 0);
	assert_int_equal(mount("none", "o", "overlay", 0, "lowerdir=l,upperdir=u,workdir=w"), 0);
	assert_int_equal(chdir("o"), 0);
	assert_true(data_dir_check(&e) < 0);
	assert_non_null(strstr(e.text, "data directory: its file system cannot"));
	assert_int_equal(count_entries(), 0);
	leave_tmpfs(state);
}

/* What root may do is not what the file system can do. */
static void test_read_only(void **state)
{
	struct err e = ERR_INIT;
	enter_tmpfs(state);
	assert_int_equal(mount("none", ".", NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_true(data_dir_check(&e) < 0);
	assert_non_null(strstr(e.text, "data directory: "));
	leave_tmpfs(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),
		fixture_test(test_overlay),
		fixture_test(test_read_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
