/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;
		close(fd);
		errno = saved;
	}
	return -EBADF;
}

DIR *fd_open_dir(int fd)
{
	DIR *dir = fdopendir(fd);
	if (!dir)
		fd_close(fd);
	return dir;
}

DIR *fd_list_dir(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return again < 0 ? NULL : fd_open_dir(again);
}

void fd_replace(int *slot, int fd)
{
	fd_close(*slot);
	*slot = fd;
}

static int change_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);
	if (flags < 0)
		return -errno;
	int want = on ? flags | flag : flags & ~flag;
	if (want != flags && fcntl(fd, set, want) < 0)
		return -errno;
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return change_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return change_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

/* Writes all, at @offset if it is to be @placed, else where the descriptor is. */
static int write_loop(int fd, const char *data, size_t len, bool placed, uint64_t offset)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = placed ? pwrite(fd, data + done, len - done, (off_t)(offset + done))
				   : write(fd, data + done, len - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	return write_loop(fd, data, len, false, 0);
}

int fd_write_at(int fd, const void *data, size_t size, uint64_t offset)
{
	return write_loop(fd, data, size, true, offset);
}

/* Reads up to the end or @size bytes, from @offset if that is a @placed one, as above. */
static int read_loop(int fd, char *mem, size_t size, bool placed, uint64_t offset, size_t *ret)
{
	size_t got = 0;
	while (got < size) {
		ssize_t n = placed ? pread(fd, mem + got, size - got, (off_t)(offset + got))
				   : read(fd, mem + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	*ret = got;
	return 0;
}

int fd_read_full(int fd, void *mem, size_t size, size_t *ret)
{
	return read_loop(fd, mem, size, false, 0, ret);
}

int fd_read_at(int fd, void *mem, size_t size, uint64_t offset, size_t *ret)
{
	return read_loop(fd, mem, size, true, offset, ret);
}

int fd_read_exactly(int fd, void *mem, size_t size)
{
	size_t got = 0;
	int r = fd_read_full(fd, mem, size, &got);
	return r == 0 && got < size ? -EPIPE : r;
}

int fd_fill_stdio(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* check-style allows cloexec: stdio is inherited by design */
		int opened = open("/dev/null", O_RDWR);
		if (opened < 0)
			return -errno;
		if (opened != fd) { /* cannot be: the lowest free descriptor is taken */
			close(opened);
			return -EBADF;
		}
	}
	return 0;
}

/* The smallest kept descriptor that is at least @from, or UINT_MAX. */
static unsigned next_kept(const int *keep, size_t n, unsigned from)
{
	unsigned best = UINT_MAX;
	for (size_t i = 0; i < n; i++)
		if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < best)
			best = (unsigned)keep[i];
	return best;
}

int fd_close_others(const int *keep, size_t n)
{
	unsigned from = 3;
	for (;;) {
		unsigned kept = next_kept(keep, n, from);
		if (kept > from && close_range(from, kept == UINT_MAX ? kept : kept - 1, 0) < 0)
			return -errno;
		if (kept == UINT_MAX)
			return 0;
		from = kept + 1;
	}
}

int fd_keep_only(const int *keep, size_t n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return fd_close_others(keep, n);
}

bool fd_is_dev_null(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

int fd_link_at(int fd, int dirfd, const char *name)
{
	char self[sizeof("/proc/self/fd/") + 11];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dirfd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}
