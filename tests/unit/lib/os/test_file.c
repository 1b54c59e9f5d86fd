/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/rmtree.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void assert_file(int dir, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;
	assert_int_equal(file_read_at(dir, name, 1000, &text, &len), 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

/* Entries of a directory, "." and ".." left out. */
static int count_entries(int dir)
{
	cleanup_dir DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_non_null(d);
	int n = 0;
	while (readdir(d))
		n++;
	return n - 2;
}

static void test_read_limit(void **state)
{
	int dir = fixture_dir(state);
	fixture_write(state, "f", "12345", 5);
	cleanup_free char *text = NULL;
	size_t len = 4711;
	assert_int_equal(file_read_at(dir, "f", 4, &text, &len), -EFBIG);
	assert_null(text);
	assert_int_equal(len, 4711);
	assert_int_equal(file_read_at(dir, "f", 5, &text, NULL), 0);
	assert_string_equal(text, "12345");
	fixture_write(state, "empty", "", 0);
	assert_file(dir, "empty", "");
}

/* Nothing that somebody else may have put there makes the reader hang or leave the directory. */
static void test_read_refuses_others(void **state)
{
	int dir = fixture_dir(state);
	char *text = NULL;
	assert_int_equal(symlinkat("/etc/passwd", dir, "link"), 0);
	assert_int_equal(mkdirat(dir, "dir", 0700), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(file_read_at(dir, "link", 10000, &text, NULL), -ELOOP);
	assert_int_equal(file_read_at(dir, "dir", 10000, &text, NULL), -EINVAL);
	assert_int_equal(file_read_at(dir, "fifo", 10000, &text, NULL), -EINVAL);
	assert_int_equal(file_read_at(dir, "none", 10000, &text, NULL), -ENOENT);
	assert_int_equal(file_read_at(AT_FDCWD, "/dev/zero", 10000, &text, NULL), -EINVAL);
	assert_null(text);
}

/* Only regular files are opened; what else there is cannot even notice. */
static void test_open_regular(void **state)
{
	static const char *const others[] = { "link", "dangling", "dir", "fifo", "socket", "none" };
	int dir = fixture_dir(state);
	fixture_write(state, "f", "12345", 5);
	assert_int_equal(symlinkat("f", dir, "link"), 0);
	assert_int_equal(symlinkat("none", dir, "dangling"), 0);
	assert_int_equal(mkdirat(dir, "dir", 0700), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(mknodat(dir, "socket", S_IFSOCK | 0600, 0), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		int none = 4711;
		assert_int_equal(file_open_regular_at(dir, others[i], &none), FILE_E_OTHER);
		assert_int_equal(none, 4711);
	}
	cleanup_fd int fd = -EBADF;
	cleanup_free char *text = NULL;
	size_t len = 0;
	assert_int_equal(file_open_regular_at(dir, "f/x", &fd), -ENOTDIR);
	assert_int_equal(file_open_regular_at(dir, "f", &fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(file_read_fd(fd, 4, &text, &len), -EFBIG);
	assert_int_equal(file_read_fd(fd, 5, &text, &len), 0);
	assert_string_equal(text, "12345");
	assert_int_equal(len, 5);
	cleanup_fd int other = openat(dir, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(file_read_fd(other, 5, &text, NULL), -EINVAL);
}

static void test_write(void **state)
{
	int dir = fixture_dir(state);
	mode_t mask = umask(077); /* has no effect */
	assert_int_equal(file_write_at(dir, "f", "one", 3, 0640), 0);
	umask(mask);
	assert_file(dir, "f", "one");
	struct stat before, after;
	assert_int_equal(fstatat(dir, "f", &before, 0), 0);
	assert_int_equal(before.st_mode & 0777, 0640);
	assert_int_equal(file_write_at(dir, "f", "two, longer", 11, 0640), 0);
	assert_file(dir, "f", "two, longer");
	/* Replaced, never written in place. */
	assert_int_equal(fstatat(dir, "f", &after, 0), 0);
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(file_replace_at(dir, "f", "", 0, 0600), 0);
	assert_file(dir, "f", "");
	assert_int_equal(count_entries(dir), 1);
}

static void test_write_replaces_link(void **state)
{
	int dir = fixture_dir(state);
	fixture_write(state, "victim", "safe", 4);
	assert_int_equal(symlinkat("victim", dir, "f"), 0);
	assert_int_equal(file_write_at(dir, "f", "new", 3, 0600), 0);
	assert_file(dir, "victim", "safe");
	assert_file(dir, "f", "new");
}

static void test_write_failure_leaves_nothing(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	fixture_write(state, "d/f", "", 0);
	assert_int_equal(file_write_at(dir, "d", "x", 1, 0600), -EISDIR);
	assert_int_equal(count_entries(dir), 1);
	char name[NAME_MAX + 1];
	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	assert_int_equal(file_write_at(dir, name, "x", 1, 0600), -ENAMETOOLONG);
	assert_int_equal(file_write_at(-EBADF, "x", "x", 1, 0600), -EBADF);
	assert_int_equal(count_entries(dir), 1);
}

/* A file system that is full: here, the limit on a file's size. */
static void test_write_out_of_space(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(file_write_at(dir, "f", "old", 3, 0600), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit limit = { 10, 10 };
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(2);
		_exit(file_write_at(dir, "f", "longer than that", 16, 0600) == -EFBIG ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_file(dir, "f", "old");
	assert_int_equal(count_entries(dir), 1);
}

/* What inotify(7) has to say, in one set. */
static uint32_t drain(int fd)
{
	char mem[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	uint32_t masks = 0;
	ssize_t n;
	while ((n = read(fd, mem, sizeof(mem))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *ev = (const void *)(mem + at);
			masks |= ev->mask;
			at += (ssize_t)(sizeof(*ev) + ev->len);
		}
	return masks;
}

/* A file appears with its time; only a later touch changes that. */
static void test_touch_is_one_change(void **state)
{
	int dir = fixture_dir(state);
	cleanup_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	assert_true(fd >= 0);
	assert_true(inotify_add_watch(fd, fixture_path(state), IN_CREATE | IN_ATTRIB) >= 0);
	assert_int_equal(file_touch_at(dir, "f", 0600), 0);
	assert_int_equal(drain(fd), IN_CREATE);
	assert_int_equal(file_touch_at(dir, "f", 0600), 0);
	assert_int_equal(drain(fd), IN_ATTRIB);
}

static void test_touch(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(file_touch_at(dir, "f", 0600), 0);
	assert_file(dir, "f", "");
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	assert_int_equal(utimensat(dir, "f", old, 0), 0);
	assert_int_equal(file_touch_at(dir, "f", 0600), 0);
	struct stat st;
	assert_int_equal(fstatat(dir, "f", &st, 0), 0);
	assert_true(st.st_mtim.tv_sec > 1);
	assert_int_equal(symlinkat("elsewhere", dir, "link"), 0);
	assert_int_equal(file_touch_at(dir, "link", 0600), -ELOOP);
	assert_int_equal(faccessat(dir, "elsewhere", F_OK, 0), -1);
}

#define HOLE_LEN \
	((off_t)(8 * 1024 * 1024)) /* of the sparse files below, before and after the data */

/* A file with a hole, "data", and a hole. */
static int make_sparse(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "data", 4, HOLE_LEN), 4);
	assert_int_equal(ftruncate(fd, 2 * HOLE_LEN), 0);
	return fd;
}

static void assert_sparse_copy(int fd)
{
	struct stat st;
	char data[4];
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 2 * HOLE_LEN);
	assert_true(st.st_blocks * 512 < HOLE_LEN);
	assert_int_equal(pread(fd, data, 4, HOLE_LEN), 4);
	assert_memory_equal(data, "data", 4);
}

static void test_copy_sparse(void **state)
{
	int dir = fixture_dir(state);
	cleanup_fd int from = make_sparse(dir, "from");
	cleanup_fd int to = openat(dir, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(file_copy_sparse(from, to), 0);
	assert_sparse_copy(to);
	/* Nothing but holes, and nothing at all. */
	assert_int_equal(ftruncate(from, 0), 0);
	assert_int_equal(file_copy_sparse(from, to), 0);
	assert_int_equal(ftruncate(from, HOLE_LEN), 0);
	assert_int_equal(file_copy_sparse(from, to), 0);
	struct stat st;
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, HOLE_LEN);
	assert_int_equal(file_copy_sparse(-EBADF, to), -EBADF);
}

/* Caches and pods may lie on different file systems, between which the kernel does not copy. */
static void test_copy_sparse_between_file_systems(void **state)
{
	cleanup_fd int memory = memfd_create("from", MFD_CLOEXEC);
	assert_true(memory >= 0);
	assert_int_equal(pwrite(memory, "data", 4, HOLE_LEN), 4);
	assert_int_equal(ftruncate(memory, 2 * HOLE_LEN), 0);
	cleanup_fd int to = openat(fixture_dir(state), "to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(file_copy_sparse(memory, to), 0);
	assert_sparse_copy(to);
}

static int read_again(void *ctx)
{
	cleanup_free char *text = NULL;
	return file_read_at(*(int *)ctx, "f", 10, &text, NULL);
}

static void test_short_of_memory(void **state)
{
	int dir = fixture_dir(state);
	fixture_write(state, "f", "x", 1);
	for_each_failing_alloc(read_again, &dir);
}

/* Pipes and links, which users name on command lines. */
static void test_read_path(void **state)
{
	cleanup_free char *text = NULL, *piped = NULL, *none = NULL;
	char path[512];
	size_t len;
	int fds[2];
	fixture_write(state, "f", "12345", 5);
	assert_int_equal(symlinkat("f", fixture_dir(state), "link"), 0);
	snprintf(path, sizeof(path), "%s/link", fixture_path(state));
	assert_int_equal(file_read_path(path, 5, &text, &len), 0);
	assert_int_equal(len, 5);
	assert_string_equal(text, "12345");
	assert_int_equal(file_read_path(path, 4, &none, &len), -EFBIG);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	close(fds[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	assert_int_equal(file_read_path(path, 5, &piped, &len), 0);
	assert_string_equal(piped, "abc");
	close(fds[0]);
	assert_int_equal(file_read_path("/no/such/file", 5, &none, &len), -ENOENT);
	assert_int_equal(file_read_path("/", 5, &none, &len), -EISDIR);
}

static int save(void **state, const char *name, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	return file_save_path(path, text, strlen(text), 0644);
}

static mode_t mode_of(int dir, const char *name)
{
	struct stat st;
	assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode;
}

/* Where nobody else makes names a link is what its owner wants, and a pipe, too. */
static void test_save_in_own_directory(void **state)
{
	char text[8] = "";
	int dir = fixture_dir(state);
	umask(027);
	assert_int_equal(save(state, "f", "longer than the next"), 0);
	umask(022);
	assert_int_equal(mode_of(dir, "f"), S_IFREG | 0640);
	assert_int_equal(symlinkat("f", dir, "link"), 0);
	assert_int_equal(save(state, "link", "text"), 0);
	assert_file(dir, "f", "text");
	assert_true(S_ISLNK(mode_of(dir, "link")));
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	cleanup_fd int fifo = openat(dir, "fifo", O_RDWR | O_CLOEXEC);
	assert_int_equal(save(state, "fifo", "text"), 0);
	assert_int_equal(read(fifo, text, sizeof(text)), 4);
	assert_int_equal(save(state, "none/f", "text"), -ENOENT);
	assert_int_equal(save(state, "f/g", "text"), -ENOTDIR);
	assert_int_equal(save(state, "", "text"), -EISDIR);
	assert_int_equal(file_save_path("", "text", 4, 0644), -ENOENT);
	assert_int_equal(count_entries(dir), 3);
}

/* As in /tmp, and in a directory of a group, or of somebody else. */
static void test_save_where_others_write(void **state)
{
	static const struct {
		mode_t mode;
		uid_t owner;
	} dirs[] = { { 01777, 0 }, { 0777, 0 }, { 0770, 0 }, { 03770, 0 }, { 0755, 65501 } };
	int dir = fixture_dir(state);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		assert_int_equal(mkdirat(dir, "open", 0700), 0);
		if (dirs[i].owner != 0 && fchownat(dir, "open", dirs[i].owner, 0, 0) < 0)
			break; /* we are not root */
		assert_int_equal(fchmodat(dir, "open", dirs[i].mode, 0), 0);
		fixture_write(state, "precious", "precious", 8);
		assert_int_equal(symlinkat("../precious", dir, "open/link"), 0);
		assert_int_equal(linkat(dir, "precious", dir, "open/hard", 0), 0);
		assert_int_equal(symlinkat("../made", dir, "open/dangling"), 0);
		umask(027);
		assert_int_equal(save(state, "open/link", "text"), 0);
		umask(022);
		assert_int_equal(save(state, "open/hard", "text"), 0);
		assert_int_equal(save(state, "open/dangling", "text"), 0);
		assert_int_equal(save(state, "open/new", "text"), 0);
		assert_int_equal(save(state, "open/new", "other"), 0);
		assert_file(dir, "precious", "precious");
		assert_int_equal(faccessat(dir, "made", F_OK, AT_SYMLINK_NOFOLLOW), -1);
		assert_file(dir, "open/hard", "text");
		assert_file(dir, "open/new", "other");
		assert_int_equal(mode_of(dir, "open/link"), S_IFREG | 0640);
		assert_int_equal(rmtree(dir, "open"), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_read_path),
		fixture_test(test_read_limit),
		fixture_test(test_read_refuses_others),
		fixture_test(test_open_regular),
		fixture_test(test_write),
		fixture_test(test_write_replaces_link),
		fixture_test(test_write_failure_leaves_nothing),
		fixture_test(test_write_out_of_space),
		fixture_test(test_save_in_own_directory),
		fixture_test(test_save_where_others_write),
		fixture_test(test_touch),
		fixture_test(test_touch_is_one_change),
		fixture_test(test_copy_sparse),
		fixture_test(test_copy_sparse_between_file_systems),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
