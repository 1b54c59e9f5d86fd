/* SPDX-License-Identifier: Apache-2.0 */
/* In a mount namespace of the test's own. */
#include "stage1/volumes/volume_key.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/volume_source.h"
#include "tests/support/fixture.h"

static const char *in(void **state, const char *name)
{
	static char path[2][300];
	static unsigned next;
	char *p = path[next++ % 2];
	snprintf(p, sizeof(path[0]), "%s/%s", fixture_path(state), name);
	return p;
}

/* The key of what is at @path, for a while. */
static const char *key(const char *path, bool read_only, bool recursive)
{
	static char keys[8][VOLUME_KEY_MAX + 1];
	static unsigned next;
	char *ret = keys[next++ % 8];
	cleanup_fd int found = volume_source_find(path);
	assert_true(found >= 0);
	assert_int_equal(volume_key(found, read_only, recursive, ret), 0);
	assert_int_equal(strspn(ret, "0123456789abcdef-"), strlen(ret));
	return ret;
}

static void test_same(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "dir", 0755), 0);
	assert_int_equal(symlinkat("dir", fixture_dir(state), "link"), 0);
	fixture_write(state, "dir/file", "x", 1);
	const char *dir = key(in(state, "dir"), false, true);
	assert_string_equal(key(in(state, "dir/../link"), false, true), dir);
	assert_string_not_equal(key(in(state, "dir"), true, true), dir);
	assert_string_not_equal(key(in(state, "dir"), false, false), dir);
	assert_string_not_equal(key(in(state, "dir/file"), false, true), dir);
	assert_string_equal(key("/", false, true), key("/", false, true));
}

/* Another mount of the same directory is another volume, and so is one with other flags. */
static void test_mounts(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "dir", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "other", 0755), 0);
	assert_int_equal(mount(in(state, "dir"), in(state, "other"), NULL, MS_BIND, NULL), 0);
	const char *other = key(in(state, "other"), false, false);
	assert_string_not_equal(key(in(state, "dir"), false, false), other);
	assert_int_equal(
		mount(NULL, in(state, "other"), NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL), 0);
	assert_string_not_equal(key(in(state, "other"), false, false), other);
	assert_int_equal(umount2(in(state, "other"), MNT_DETACH), 0);
}

/* What is mounted below counts only if it comes along, and only what is below. */
static void test_below(void **state)
{
	static const char *const dirs[] = { "a\\\t b", "a\\\t b/c", "a\\\t b+" };
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(mkdirat(fixture_dir(state), dirs[i], 0755), 0);
	const char *all = key(in(state, dirs[0]), false, true);
	const char *one = key(in(state, dirs[0]), false, false);
	assert_int_equal(mount("none", in(state, dirs[2]), "tmpfs", 0, NULL), 0);
	assert_string_equal(key(in(state, dirs[0]), false, true), all);
	assert_int_equal(mount("none", in(state, dirs[1]), "tmpfs", 0, NULL), 0);
	const char *with = key(in(state, dirs[0]), false, true);
	assert_string_not_equal(with, all);
	assert_string_equal(key(in(state, dirs[0]), false, false), one);
	assert_int_equal(
		mount(NULL, in(state, dirs[1]), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_string_not_equal(key(in(state, dirs[0]), false, true), with);
	for (size_t i = 1; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(umount2(in(state, dirs[i]), MNT_DETACH), 0);
	assert_string_equal(key(in(state, dirs[0]), false, true), all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_same),
		fixture_test(test_mounts),
		fixture_test(test_below),
	};
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
