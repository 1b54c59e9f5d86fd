/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static bool exists(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* jail/ with a file and links of all kinds; secret/ beside it. */
static int make_jail(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "jail", 0700), 0);
	assert_int_equal(mkdirat(dir, "jail/sub", 0700), 0);
	assert_int_equal(mkdirat(dir, "secret", 0700), 0);
	fixture_write(state, "secret/f", "", 0);
	fixture_write(state, "jail/f", "", 0);
	assert_int_equal(symlinkat("f", dir, "jail/inner"), 0);
	assert_int_equal(symlinkat("../f", dir, "jail/sub/up"), 0);
	assert_int_equal(symlinkat("../secret/f", dir, "jail/outer"), 0);
	assert_int_equal(symlinkat("../secret", dir, "jail/dir"), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "jail/absolute"), 0);
	assert_int_equal(symlinkat("/proc/self/root", dir, "jail/magic"), 0);
	int jail = openat(dir, "jail", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(jail >= 0);
	return jail;
}

static void test_beneath_inside(void **state)
{
	cleanup_fd int jail = make_jail(state);
	static const char *const inside[] = { "f", "./f", "sub/../f", "inner", "sub/up", "sub" };
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		cleanup_fd int fd = path_open_beneath(jail, inside[i], O_RDONLY, 0);
		if (fd < 0)
			fail_msg("%s: %s", inside[i], strerror(-fd));
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	cleanup_fd int made = path_open_beneath(jail, "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	assert_true(made >= 0);
	struct stat st;
	assert_int_equal(fstat(made, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(path_open_beneath(jail, "inner", O_RDONLY | O_NOFOLLOW, 0), -ELOOP);
	assert_int_equal(path_open_beneath(jail, "none", O_RDONLY, 0), -ENOENT);
}

static void test_beneath_escapes(void **state)
{
	cleanup_fd int jail = make_jail(state);
	static const char *const escapes[] = { "..",       "../secret/f", "sub/../../secret/f",
					       "outer",    "dir/f",       "absolute",
					       "/",        "/etc/passwd", "magic/etc/passwd",
					       "sub/../.." };
	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
		int fd = path_open_beneath(jail, escapes[i], O_RDONLY, 0);
		if (fd != -EXDEV)
			fail_msg("%s: %d", escapes[i], fd);
	}
	assert_int_equal(path_open_beneath(jail, "dir/planted", O_WRONLY | O_CREAT, 0600), -EXDEV);
	assert_false(exists(fixture_dir(state), "secret/planted"));
}

/* A magic link is refused even where it points below the directory. */
static void test_beneath_magic_links(void **state)
{
	(void)state;
	cleanup_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc >= 0);
	assert_int_equal(path_open_beneath(proc, "self/cwd", O_RDONLY, 0), -ELOOP);
	assert_int_equal(path_open_beneath(proc, "self/fd/0", O_RDONLY, 0), -ELOOP);
	cleanup_fd int status = path_open_beneath(proc, "self/status", O_RDONLY, 0);
	assert_true(status >= 0);
}

static void test_make_dirs(void **state)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/a/b//c", fixture_path(state));
	for (int i = 0; i < 2; i++) {
		cleanup_fd int fd = path_make_dirs(path, 0750);
		assert_true(fd >= 0);
		struct stat st;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
	}
	assert_true(exists(fixture_dir(state), "a/b/c"));
	fixture_write(state, "file", "", 0);
	snprintf(path, sizeof(path), "%s/file/x", fixture_path(state));
	assert_int_equal(path_make_dirs(path, 0700), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/file", fixture_path(state));
	assert_int_equal(path_make_dirs(path, 0700), -ENOTDIR);
	assert_int_equal(path_make_dirs("", 0700), -ENOENT);
	cleanup_fd int root = path_make_dirs("/", 0700);
	assert_true(root >= 0);
}

static void test_make_dirs_limit(void **state)
{
	(void)state;
	char path[PATH_MAX + 1];
	memset(path, '/', sizeof(path));
	path[PATH_MAX] = '\0';
	assert_int_equal(path_make_dirs(path, 0700), -ENAMETOOLONG);
	path[PATH_MAX - 1] = '\0';
	cleanup_fd int fd = path_make_dirs(path, 0700); /* "/", in a long way */
	assert_true(fd >= 0);
}

static void test_from_self(void **state)
{
	(void)state;
	char out[PATH_MAX], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	self[n] = '\0';
	assert_int_equal(path_from_self(strrchr(self, '/') + 1, out, sizeof(out)), 0);
	assert_string_equal(out, self);
	assert_int_equal(path_from_self("no such thing", out, sizeof(out)), -ENOENT);
	assert_int_equal(path_from_self(strrchr(self, '/') + 1, out, (size_t)n), -ENAMETOOLONG);
	assert_int_equal(path_from_self("../..", out, sizeof(out)), 0);
	assert_null(strstr(out, ".."));
}

static void test_find_program(void **state)
{
	char list[3 * PATH_MAX], want[PATH_MAX], out[PATH_MAX] = "unset";
	int dir = fixture_dir(state);
	const char *path = fixture_path(state);
	fixture_write(state, "prog", "", 0);
	fixture_write(state, "plain", "", 0);
	assert_int_equal(mkdirat(dir, "subdir", 0700), 0);
	assert_int_equal(fchmodat(dir, "prog", 0700, 0), 0);
	snprintf(list, sizeof(list), "::/nonexistent:%s:", path);
	snprintf(want, sizeof(want), "%s/prog", path);
	assert_int_equal(path_find_program("plain", list, out, sizeof(out)), -ENOENT);
	assert_int_equal(path_find_program("subdir", list, out, sizeof(out)), -ENOENT);
	assert_int_equal(path_find_program("prog", "", out, sizeof(out)), -ENOENT);
	assert_int_equal(path_find_program("prog", NULL, out, sizeof(out)), -ENOENT);
	assert_string_equal(out, "unset");
	assert_int_equal(path_find_program("prog", list, out, sizeof(out)), 0);
	assert_string_equal(out, want);
	assert_int_equal(path_find_program(want, NULL, out, sizeof(out)), 0);
	assert_int_equal(path_find_program("prog", list, out, strlen(want)), -ENAMETOOLONG);
	assert_int_equal(path_find_program("prog", list, out, strlen(want) + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_beneath_inside),      fixture_test(test_beneath_escapes),
		fixture_test(test_beneath_magic_links), fixture_test(test_make_dirs),
		fixture_test(test_make_dirs_limit),     fixture_test(test_from_self),
		fixture_test(test_find_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
