/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static int raced; /* calls that fail as if something was renamed meanwhile */

long __real_syscall(long nr, long a, const char *path, void *how, size_t size);
long __wrap_syscall(long nr, long a, const char *path, void *how, size_t size);

long __wrap_syscall(long nr, long a, const char *path, void *how, size_t size)
{
	if (nr == SYS_openat2 && raced > 0) {
		raced--;
		errno = EAGAIN;
		return -1;
	}
	return __real_syscall(nr, a, path, how, size);
}

static bool is_same(int dir, const char *name, int fd)
{
	struct stat a, b;
	return fstatat(dir, name, &a, 0) == 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino;
}

/* root/ with "f" and links that would leave it; "f" beside it. */
static int make_root(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "root", 0700), 0);
	fixture_write(state, "f", "", 0);
	fixture_write(state, "root/f", "", 0);
	assert_int_equal(symlinkat("../f", dir, "root/up"), 0);
	assert_int_equal(symlinkat("/f", dir, "root/absolute"), 0);
	int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	return root;
}

static void test_stays(void **state)
{
	static const char *const ways[] = { "f", "/f", "../f", "../../f", "up", "absolute" };
	cleanup_fd int root = make_root(state);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cleanup_fd int fd = open_in_root(root, ways[i], O_RDONLY);
		assert_true(fd >= 0);
		assert_true(is_same(root, "f", fd));
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	assert_int_equal(open_in_root(root, "none", O_RDONLY), -ENOENT);
}

static void test_made(void **state)
{
	struct stat st;
	cleanup_fd int root = make_root(state);
	umask(0);
	cleanup_fd int fd = open_in_root(root, "../new", O_CREAT | O_WRONLY);
	assert_true(fd >= 0 && is_same(root, "new", fd));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

/* A way into another root than the app's. */
static void test_no_magic(void **state)
{
	(void)state;
	cleanup_fd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(open_in_root(proc, "self/root", O_PATH), -ELOOP);
	assert_int_equal(open_in_root(proc, "self/cwd", O_PATH), -ELOOP);
}

static void test_tries_again(void **state)
{
	cleanup_fd int root = make_root(state);
	raced = 3;
	cleanup_fd int fd = open_in_root(root, "../f", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(raced, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_stays),
		fixture_test(test_made),
		fixture_test(test_no_magic),
		fixture_test(test_tries_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
