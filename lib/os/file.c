/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/random.h"

#define COPY_CHUNK     16384 /* bytes in flight where the kernel does not copy */
#define PROC_LINK_SIZE 32    /* "/proc/self/fd/" and a number */

int file_read_at(int dirfd, const char *name, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : file_read_fd(fd, max, ret, ret_len);
}

int file_open_regular_at(int dirfd, const char *name, int *ret_fd)
{
	char link[PROC_LINK_SIZE];
	struct stat st;
	cleanup_fd int place = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return errno == ENOENT ? FILE_E_OTHER : -errno;
	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return FILE_E_OTHER;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	int fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (uintmax_t)st.st_size > max)
		return -EFBIG;
	size_t size = (size_t)st.st_size;
	cleanup_free char *text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	size_t got;
	int r = fd_read_full(fd, text, size, &got);
	if (r < 0)
		return r;
	text[got] = '\0';
	*ret = TAKE_PTR(text);
	if (ret_len)
		*ret_len = got;
	return 0;
}

int file_read_path(const char *path, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	size_t got;
	cleanup_free char *text =
		malloc(max + 2); /* pages that nothing is read into are not used */
	int r = text ? fd_read_full(fd, text, max + 1, &got) : -ENOMEM;
	if (r == 0 && got > max)
		r = -EFBIG;
	if (r < 0)
		return r;
	text[got] = '\0';
	*ret = TAKE_PTR(text);
	*ret_len = got;
	return 0;
}

enum {
	SYNC = 1,  /* to the disk, before it gets its name */
	UMASK = 2, /* the mode is subject to it */
};

static int file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			unsigned int flags)
{
	uint64_t tag;
	int r = random_bytes(&tag, sizeof(tag));
	if (r < 0)
		return r;
	char temp[NAME_MAX + 1];
	int n = snprintf(temp, sizeof(temp), ".%s.%016jx", name, (uintmax_t)tag);
	if (n < 0 || (size_t)n >= sizeof(temp))
		return -ENAMETOOLONG;
	cleanup_fd int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = !(flags & UMASK) && fchmod(fd, mode) < 0 ? -errno : fd_write_all(fd, data, len);
	if (r == 0 && flags & SYNC && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, temp, dirfd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dirfd, temp, 0);
	return r;
}

int file_write_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode)
{
	return file_replace(dirfd, name, data, len, mode, SYNC);
}

int file_replace_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode)
{
	return file_replace(dirfd, name, data, len, mode, 0);
}

/* True if nobody but us and root can put names into the directory. */
static bool is_closed_to_others(int dirfd)
{
	struct stat st;
	return fstat(dirfd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int file_save_path(const char *path, const void *data, size_t len, mode_t mode)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[PATH_MAX] = ".";
	if (slash && (size_t)(name - path) >= sizeof(parent))
		return -ENAMETOOLONG;
	if (slash)
		snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	if (!*name)
		return *path ? -EISDIR : -ENOENT;
	cleanup_fd int dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!is_closed_to_others(dir))
		return file_replace(dir, name, data, len, mode, UMASK);
	cleanup_fd int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd_write_all(fd, data, len);
}

int file_touch_at(int dirfd, const char *name, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW;
	int created = openat(dirfd, name, flags | O_EXCL | O_CLOEXEC, mode);
	if (created >= 0) {
		fd_close(created);
		return 0;
	}
	cleanup_fd int fd = errno == EEXIST ? openat(dirfd, name, flags | O_CLOEXEC, mode) : -EBADF;
	if (fd < 0)
		return -errno;
	return futimens(fd, NULL) < 0 ? -errno : 0;
}

/* As copy_extent(), through memory. */
static int copy_extent_by_hand(int from, int to, off_t pos, off_t end)
{
	char mem[COPY_CHUNK];
	while (pos < end) {
		ssize_t n = pread(from, mem, MIN(sizeof(mem), (size_t)(end - pos)), pos);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		int r = fd_write_at(to, mem, (size_t)n, (uint64_t)pos);
		if (r < 0)
			return r;
		pos += n;
	}
	return 0;
}

/* Copies the bytes [@from_off, @end) to the same place in @to. */
static int copy_extent(int from, int to, off_t from_off, off_t end)
{
	off_t to_off = from_off;
	while (from_off < end) {
		ssize_t n =
			copy_file_range(from, &from_off, to, &to_off, (size_t)(end - from_off), 0);
		if (n < 0 && errno == EINTR)
			continue;
		/* Between file systems, or not supported by this one. */
		if (n < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL))
			return copy_extent_by_hand(from, to, from_off, end);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

int file_copy_sparse(int from, int to)
{
	struct stat st, old;
	if (fstat(from, &st) < 0 || fstat(to, &old) < 0)
		return -errno;
	/*
	 * Only if there is something to cut off: ext4 writes out what was truncated to nothing when
	 * it is closed.
	 */
	if ((old.st_size > 0 && ftruncate(to, 0) < 0) || ftruncate(to, st.st_size) < 0)
		return -errno;
	off_t pos = 0;
	while (pos < st.st_size) {
		off_t data = lseek(from, pos, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno; /* only a hole is left */
		off_t hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		int r = copy_extent(from, to, data, hole);
		if (r < 0)
			return r;
		pos = hole;
	}
	return 0;
}
