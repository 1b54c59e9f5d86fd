/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define SKIPPED 77
#define NOBODY  65534

/*
 * What happens just before the program under test removes a name; true if it then gets @errno of
 * the hook's instead.
 */
static bool (*before_unlink)(int dirfd, const char *name, int flags);

/* Instead of the C library's. */
int unlinkat(int dirfd, const char *name, int flags)
{
	if (before_unlink && before_unlink(dirfd, name, flags))
		return -1;
	return (int)syscall(SYS_unlinkat, dirfd, name, flags);
}

static bool exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_file(int dir, const char *name)
{
	assert_int_equal(fd_close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), -EBADF);
	assert_true(exists(dir, name));
}

static void test_all_types(void **state)
{
	int dir = fixture_dir(state);
	make_file(dir, "kept");
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/empty", 0), 0);
	assert_int_equal(mkdirat(dir, "t/full", 0700), 0);
	for (int i = 0; i < 300; i++) {
		char name[32];
		snprintf(name, sizeof(name), "t/full/%d", i);
		assert_int_equal(mkdirat(dir, name, 0700), 0);
		snprintf(name, sizeof(name), "t/full/%d/f", i);
		make_file(dir, name);
	}
	assert_int_equal(symlinkat("../kept", dir, "t/link"), 0);
	assert_int_equal(symlinkat("..", dir, "t/up"), 0);
	assert_int_equal(mkfifoat(dir, "t/fifo", 0600), 0);
	assert_int_equal(rmtree(dir, "t"), 0);
	assert_false(exists(dir, "t"));
	assert_true(exists(dir, "kept"));
	assert_int_equal(rmtree(dir, "t"), 0);
	assert_int_equal(rmtree(dir, "kept"), 0);
	assert_false(exists(dir, "kept"));
}

static void test_link_itself(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	make_file(dir, "d/f");
	assert_int_equal(symlinkat("d", dir, "link"), 0);
	assert_int_equal(rmtree(dir, "link"), 0);
	assert_false(exists(dir, "link"));
	assert_true(exists(dir, "d/f"));
}

/* Directories on the way stay, and need not be readable. */
static void test_path(void **state)
{
	int dir = fixture_dir(state);
	char path[PATH_MAX];
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	assert_int_equal(mkdirat(dir, "d/e", 0700), 0);
	assert_int_equal(mkdirat(dir, "d/e/f", 0700), 0);
	make_file(dir, "d/e/f/g");
	assert_int_equal(fchmodat(dir, "d", 0300, 0), 0);
	assert_int_equal(rmtree(dir, "d/e/f"), 0);
	assert_false(exists(dir, "d/e/f"));
	make_file(dir, "d/e/g");
	snprintf(path, sizeof(path), "%s/d/e", fixture_path(state));
	assert_int_equal(rmtree(AT_FDCWD, path), 0);
	assert_true(exists(dir, "d"));
	assert_int_equal(rmtree(dir, "d/e/f"), 0);
}

/* @depth directories in each other, the first named @name. */
static void make_deep(int dir, const char *name, int depth)
{
	cleanup_fd int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < depth; i++) {
		const char *next = i == 0 ? name : "d";
		assert_int_equal(mkdirat(at, next, 0700), 0);
		fd_replace(&at, openat(at, next, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		assert_true(at >= 0);
	}
}

/* At the limit (the innermost one is empty, and needs no level of its own), and beyond it. */
static void test_limit(void **state)
{
	static const int depths[] = { RMTREE_DEPTH_MAX + 1, RMTREE_DEPTH_MAX + 100 };
	int dir = fixture_dir(state);
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		make_deep(dir, "deep", depths[i]);
		assert_int_equal(mkdirat(dir, "deep/husk-moved-0", 0700), 0);
		assert_int_equal(mkdirat(dir, "deep/husk-moved-0/x", 0700), 0);
		assert_int_equal(rmtree(dir, "deep"), 0);
		assert_false(exists(dir, "deep"));
	}
}

static int remove_as_nobody(int dir)
{
	if (geteuid() == 0 && (fchown(dir, NOBODY, NOBODY) < 0 || setuid(NOBODY) < 0))
		return SKIPPED;
	if (mkdirat(dir, "t", 0700) < 0 || mkdirat(dir, "t/shut", 0700) < 0 ||
	    mkdirat(dir, "t/shut/in", 0700) < 0 || mkdirat(dir, "t/shut/in/d", 0500) < 0)
		return 1;
	if (fchmodat(dir, "t/shut/in", 0555, 0) < 0 || fchmodat(dir, "t/shut", 0, 0) < 0)
		return 2;
	if (rmtree(dir, "t") != 0)
		return 3;
	return exists(dir, "t") ? 4 : 0;
}

static void check_child(int (*fn)(int dir), int dir)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("skip: not permitted here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_modes_in_the_way(void **state)
{
	check_child(remove_as_nobody, fixture_dir(state));
}

static const char *dir_path; /* of the running test, for its child */

/*
 * A subvolume of btrfs: another device, but no mount, so the kernel would say that it is not empty.
 */
static bool is_no_mount(int dirfd, const char *name, int flags)
{
	(void)dirfd;
	errno = ENOTEMPTY;
	return strcmp(name, "mnt") == 0 && flags & AT_REMOVEDIR;
}

static int remove_with_mount(int dir)
{
	(void)dir;
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return SKIPPED;
	/* By its path: the descriptor is of another mount namespace. */
	if (chdir(dir_path) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "t/mnt", "tmpfs", 0, NULL) < 0)
		return SKIPPED;
	if (rmtree(AT_FDCWD, "t") != -EBUSY)
		return 1;
	make_file(AT_FDCWD, "t/mnt/kept");
	if (rmtree(AT_FDCWD, "t") != -EBUSY)
		return 2;
	before_unlink = is_no_mount;
	if (rmtree(AT_FDCWD, "t") != -EXDEV)
		return 3;
	if (!exists(AT_FDCWD, "t/mnt/kept"))
		return 4;
	/* The tree itself may be another file system, and is emptied. */
	if (chdir("t") < 0 || rmtree(AT_FDCWD, "mnt") != -ENOTEMPTY)
		return 5;
	return exists(AT_FDCWD, "mnt/kept") ? 6 : 0;
}

/* What is mounted may be of the same file system. */
static int remove_with_bind(int dir)
{
	(void)dir;
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return SKIPPED;
	if (chdir(dir_path) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("other", "t/mnt", NULL, MS_BIND, NULL) < 0)
		return SKIPPED;
	if (rmtree(AT_FDCWD, "t") != -EBUSY && rmtree(AT_FDCWD, "t") != -EXDEV)
		return 1;
	return exists(AT_FDCWD, "other/kept") ? 0 : 2;
}

static void test_stays_on_file_system(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/mnt", 0700), 0);
	dir_path = fixture_path(state);
	check_child(remove_with_mount, dir);
}

static void test_stays_in_mount(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/mnt", 0700), 0);
	assert_int_equal(mkdirat(dir, "other", 0700), 0);
	make_file(dir, "other/kept");
	dir_path = fixture_path(state);
	check_child(remove_with_bind, dir);
}

static int moving_dir;

/*
 * When the first file of "a" goes, the directory is somewhere else, where there is a file of that
 * name, too.
 */
static bool move_away(int dirfd, const char *name, int flags)
{
	(void)dirfd;
	(void)flags;
	if (strcmp(name, "f") == 0 && exists(moving_dir, "t/a"))
		assert_int_equal(renameat(moving_dir, "t/a", moving_dir, "elsewhere/b"), 0);
	return false;
}

/* Who moves a directory while it is emptied does not make us go on where it is now. */
static void test_moved(void **state)
{
	int dir = moving_dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/a", 0700), 0);
	make_file(dir, "t/a/f");
	assert_int_equal(mkdirat(dir, "elsewhere", 0700), 0);
	assert_int_equal(mkdirat(dir, "elsewhere/a", 0700), 0); /* by its name it would go */
	make_file(dir, "elsewhere/kept");
	before_unlink = move_away;
	int r = rmtree(dir, "t");
	before_unlink = NULL;
	assert_int_equal(r, -ESTALE);
	assert_true(exists(dir, "elsewhere/a"));
	assert_true(exists(dir, "elsewhere/kept"));
	assert_int_equal(rmtree(dir, "t"), 0);
}

static int remove_once(void *ctx)
{
	int dir = *(int *)ctx;
	if (mkdirat(dir, "t", 0700) < 0 && errno != EEXIST)
		return 1;
	if (mkdirat(dir, "t/d", 0700) < 0 && errno != EEXIST)
		return 1;
	return rmtree(dir, "t");
}

static void test_short_memory(void **state)
{
	int dir = fixture_dir(state);
	for_each_failing_alloc(remove_once, &dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_all_types),
		fixture_test(test_link_itself),
		fixture_test(test_path),
		fixture_test(test_limit),
		fixture_test(test_modes_in_the_way),
		fixture_test(test_stays_on_file_system),
		fixture_test(test_stays_in_mount),
		fixture_test(test_moved),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
