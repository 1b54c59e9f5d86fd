/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define SKIPPED 77 /* exit status of a child that cannot test here */

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

static void test_remove_tree(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(fd_close(make_jail(state)), -EBADF);
	assert_int_equal(mkfifoat(dir, "jail/sub/fifo", 0600), 0);
	assert_int_equal(fchmodat(dir, "jail/sub", 0700, 0), 0);
	assert_int_equal(path_remove_tree(dir, "jail"), 0);
	assert_false(exists(dir, "jail"));
	/* The links' targets are untouched. */
	assert_true(exists(dir, "secret/f"));
	assert_int_equal(path_remove_tree(dir, "jail"), 0);
}

static void test_remove_link_itself(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(fd_close(make_jail(state)), -EBADF);
	assert_int_equal(path_remove_tree(dir, "jail/dir"), 0);
	assert_false(exists(dir, "jail/dir"));
	assert_true(exists(dir, "secret/f"));
	assert_int_equal(path_remove_tree(dir, "secret/f"), 0);
	assert_false(exists(dir, "secret/f"));
}

/* @depth directories in each other, the first named @name. */
static void make_deep(int dir, const char *name, int depth)
{
	cleanup_fd int at = dup(dir);
	for (int i = 0; i < depth; i++) {
		const char *next = i == 0 ? name : "d";
		assert_int_equal(mkdirat(at, next, 0700), 0);
		fd_replace(&at, openat(at, next, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		assert_true(at >= 0);
	}
}

static void test_remove_tree_limit(void **state)
{
	int dir = fixture_dir(state);
	make_deep(dir, "limit", PATH_REMOVE_DEPTH_MAX);
	assert_int_equal(path_remove_tree(dir, "limit"), 0);
	assert_false(exists(dir, "limit"));
	make_deep(dir, "beyond", PATH_REMOVE_DEPTH_MAX + 1);
	assert_int_equal(path_remove_tree(dir, "beyond"), -ELOOP);
	assert_true(exists(dir, "beyond"));
}

/* tree/mnt is another file system, which a bind mount of a host directory could be. */
static int remove_with_mount(const char *path)
{
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return SKIPPED;
	if (chdir(path) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "tree/mnt", "tmpfs", 0, NULL) < 0)
		return SKIPPED;
	if (fd_close(open("tree/mnt/kept", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) != -EBADF)
		return 3;
	if (path_remove_tree(AT_FDCWD, "tree") != -EXDEV)
		return 1;
	return exists(AT_FDCWD, "tree/mnt/kept") ? 0 : 2;
}

static void test_remove_stays_on_file_system(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "tree", 0700), 0);
	assert_int_equal(mkdirat(dir, "tree/mnt", 0700), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(remove_with_mount(fixture_path(state)));
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("skip: mounts are not permitted here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_remove_many(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "many", 0700), 0);
	for (int i = 0; i < 500; i++) {
		char name[32];
		snprintf(name, sizeof(name), "many/%d", i);
		fixture_write(state, name, "", 0);
	}
	assert_int_equal(path_remove_tree(dir, "many"), 0);
	assert_false(exists(dir, "many"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_beneath_inside),
		fixture_test(test_beneath_escapes),
		fixture_test(test_beneath_magic_links),
		fixture_test(test_make_dirs),
		fixture_test(test_make_dirs_limit),
		fixture_test(test_from_self),
		fixture_test(test_find_program),
		fixture_test(test_remove_tree),
		fixture_test(test_remove_link_itself),
		fixture_test(test_remove_tree_limit),
		fixture_test(test_remove_stays_on_file_system),
		fixture_test(test_remove_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
