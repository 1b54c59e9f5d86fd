/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Runs @fn in a child; what it returns is the exit status. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_close_keeps_errno(void **state)
{
	(void)state;
	int fd = open_null();
	errno = ENOENT;
	assert_int_equal(fd_close(fd), -EBADF);
	assert_int_equal(fd_close(fd), -EBADF); /* an error of close(2) */
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fd_close(-EBADF), -EBADF);
	assert_false(is_open(fd));
}

static void test_cleanup(void **state)
{
	(void)state;
	int seen;
	{
		cleanup_fd int fd = open_null();
		cleanup_fd int unset = -EBADF;
		(void)unset;
		seen = fd;
	}
	assert_false(is_open(seen));
	cleanup_fd int kept = -EBADF;
	{
		cleanup_fd int fd = open_null();
		kept = TAKE_FD(fd);
		assert_int_equal(fd, -EBADF);
	}
	assert_true(is_open(kept));
}

static void test_replace(void **state)
{
	(void)state;
	cleanup_fd int slot = -EBADF;
	fd_replace(&slot, open_null());
	int first = slot;
	int second = open_null();
	fd_replace(&slot, second);
	assert_false(is_open(first));
	assert_int_equal(slot, second);
}

static void test_flags(void **state)
{
	(void)state;
	cleanup_fd int fd = open_null();
	assert_int_equal(fd_set_nonblock(fd, true), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(fd, false), 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_cloexec(fd, false), 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	assert_int_equal(fd_set_cloexec(fd, true), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_set_nonblock(-EBADF, true), -EBADF);
	assert_int_equal(fd_set_cloexec(-EBADF, true), -EBADF);
}

#define BIG ((size_t)300000) /* more than a pipe holds */

static void *write_big(void *arg)
{
	static char data[BIG];
	memset(data, 'x', sizeof(data));
	int *fd = arg;
	int r = fd_write_all(*fd, data, sizeof(data));
	*fd = fd_close(*fd);
	return r == 0 ? arg : NULL;
}

/* Short writes and reads on both sides of a full pipe. */
static void test_write_all_and_read_full(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pthread_t writer;
	assert_int_equal(pthread_create(&writer, NULL, write_big, &p[1]), 0);
	static char got[BIG + 1];
	size_t n = 0;
	assert_int_equal(fd_read_full(p[0], got, sizeof(got), &n), 0);
	void *result = NULL;
	assert_int_equal(pthread_join(writer, &result), 0);
	assert_non_null(result);
	assert_int_equal(n, BIG);
	assert_int_equal(got[BIG - 1], 'x');
	fd_close(p[0]);
}

static void test_read_and_write_errors(void **state)
{
	(void)state;
	size_t n = 4711;
	char c;
	assert_int_equal(fd_read_full(-EBADF, &c, 1, &n), -EBADF);
	assert_int_equal(n, 4711);
	assert_int_equal(fd_write_all(-EBADF, "x", 1), -EBADF);
	assert_int_equal(fd_write_all(-EBADF, "x", 0), 0);
	cleanup_fd int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(fd_write_all(full, "x", 1), -ENOSPC);
}

static void test_at(void **state)
{
	char got[8] = "";
	size_t n = 0;
	fixture_write(state, "f", "0123456789", 10);
	cleanup_fd int fd = openat(fixture_dir(state), "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(fd_read_at(fd, got, 4, 3, &n), 0);
	assert_int_equal(n, 4);
	assert_memory_equal(got, "3456", 4);
	assert_int_equal(fd_read_at(fd, got, 4, 8, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(fd_write_at(fd, "xy", 2, 9), 0);
	assert_int_equal(fd_read_exactly(fd, got, 8), 0); /* from the beginning still */
	assert_int_equal(fd_read_exactly(fd, got, 4), -EPIPE);
	assert_int_equal(fd_read_at(-EBADF, got, 1, 0, &n), -EBADF);
	assert_int_equal(fd_write_at(-EBADF, got, 1, 0), -EBADF);
}

static int fill_stdio(void)
{
	close(0);
	close(2);
	if (fd_fill_stdio() != 0)
		return 1;
	return is_open(0) && is_open(1) && is_open(2) ? 0 : 2;
}

static void test_fill_stdio(void **state)
{
	(void)state;
	assert_int_equal(in_child(fill_stdio), 0);
	assert_int_equal(fd_fill_stdio(), 0); /* nothing to do */
}

static int close_others(void)
{
	int keep[3], gone[3];
	for (int i = 0; i < 3; i++) {
		keep[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		gone[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	const int list[] = { keep[2], -EBADF, keep[0], 1, keep[1], keep[1] };
	if (fd_close_others(list, ARRAY_SIZE(list)) != 0)
		return 1;
	for (int i = 0; i < 3; i++)
		if (!is_open(keep[i]) || is_open(gone[i]) || !is_open(i))
			return 2;
	if (fd_close_others(NULL, 0) != 0)
		return 3;
	for (int fd = 3; fd < 100; fd++)
		if (is_open(fd))
			return 4;
	return is_open(2) ? 0 : 5;
}

static int keep_only(void)
{
	int kept = fcntl(1, F_DUPFD_CLOEXEC, 10);
	if (fd_keep_only(&kept, 1) != 0)
		return 1;
	bool null = fd_is_dev_null(0) && fd_is_dev_null(1) && fd_is_dev_null(2);
	return null && is_open(kept) && !is_open(3) ? 0 : 2;
}

static void test_close_others(void **state)
{
	(void)state;
	assert_int_equal(in_child(close_others), 0);
	assert_int_equal(in_child(keep_only), 0);
}

/* The fixture sees a descriptor that is not consumed. */
static void test_open_dir(void **state)
{
	cleanup_dir DIR *dir =
		fd_open_dir(openat(fixture_dir(state), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_non_null(dir);
	fixture_write(state, "file", "x", 1);
	DIR *none = fd_open_dir(openat(fixture_dir(state), "file", O_RDONLY | O_CLOEXEC));
	assert_null(none);
	assert_int_equal(errno, ENOTDIR);
}

static size_t count_entries(DIR *dir)
{
	size_t n = 0;
	while (readdir(dir))
		n++;
	return n;
}

/* Each listing begins at the beginning, and leaves the descriptor alone. */
static void test_list_dir(void **state)
{
	int fd = fixture_dir(state);
	fixture_write(state, "file", "x", 1);
	for (int i = 0; i < 2; i++) {
		cleanup_dir DIR *dir = fd_list_dir(fd);
		assert_non_null(dir);
		assert_int_not_equal(dirfd(dir), fd);
		assert_int_equal(count_entries(dir), 3);
	}
	cleanup_fd int file = openat(fd, "file", O_RDONLY | O_CLOEXEC);
	assert_null(fd_list_dir(file));
	assert_int_equal(errno, ENOTDIR);
	assert_null(fd_list_dir(-EBADF));
	assert_int_equal(errno, EBADF);
}

static void test_is_dev_null(void **state)
{
	(void)state;
	cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_fd int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	cleanup_fd int dir = open("/", O_RDONLY | O_CLOEXEC);
	assert_true(fd_is_dev_null(null));
	assert_false(fd_is_dev_null(zero));
	assert_false(fd_is_dev_null(dir));
	assert_false(fd_is_dev_null(-EBADF));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_open_dir),
		fixture_test(test_list_dir),
		fixture_test(test_close_keeps_errno),
		fixture_test(test_cleanup),
		fixture_test(test_replace),
		fixture_test(test_flags),
		fixture_test(test_write_all_and_read_full),
		fixture_test(test_read_and_write_errors),
		fixture_test(test_at),
		fixture_test(test_fill_stdio),
		fixture_test(test_is_dev_null),
		fixture_test(test_close_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
