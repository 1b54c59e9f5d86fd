/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/volume_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"

int volume_source_check(const char *path, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "\"%s\" is neither a directory nor a regular file",
			       path);
	return 0;
}

/* ---- qcow2 ---- */

/* Where the header has what is looked at, in the order of the file; numbers are big-endian. */
#define QCOW2_MAGIC        0
#define QCOW2_VERSION      4
#define QCOW2_BACKING      8 /* of 8 bytes: where the name of the file behind this one is */
#define QCOW2_SIZE         24
#define QCOW2_INCOMPATIBLE 72 /* from version 3 on */
#define QCOW2_HEADER       104

#define QCOW2_EXTERNAL_DATA (UINT64_C(1) << 2) /* of the incompatible features */

static uint64_t read_be(const unsigned char *at, size_t n)
{
	uint64_t value = 0;
	for (size_t i = 0; i < n; i++)
		value = value << 8 | at[i];
	return value;
}

/* The header of what claims to be one, zeros behind its end. Whether it is. */
static bool read_qcow2(int fd, unsigned char ret[QCOW2_HEADER])
{
	memset(ret, 0, QCOW2_HEADER);
	return pread(fd, ret, QCOW2_HEADER, 0) >= (ssize_t)QCOW2_INCOMPATIBLE &&
	       memcmp(ret + QCOW2_MAGIC, "QFI\xfb", 4) == 0;
}

uint64_t volume_source_qcow2_size(int fd)
{
	unsigned char header[QCOW2_HEADER];
	return read_qcow2(fd, header) ? read_be(header + QCOW2_SIZE, 8) : 0;
}

static int check_qcow2(int fd, const char *path, struct err *e)
{
	unsigned char header[QCOW2_HEADER];
	if (!read_qcow2(fd, header))
		return err_set(e, -EINVAL, "\"%s\" is not in the format qcow2", path);
	if (read_be(header + QCOW2_BACKING, 8) != 0 ||
	    (read_be(header + QCOW2_VERSION, 4) >= 3 &&
	     read_be(header + QCOW2_INCOMPATIBLE, 8) & QCOW2_EXTERNAL_DATA))
		return err_set(e, -EPERM,
			       "\"%s\" is only a part: it names another file (make one of both: "
			       "qemu-img convert -O qcow2)",
			       path);
	return 0;
}

/* ---- files and devices ---- */

/* Looks first: to open a device, a FIFO, can do something. */
static int look(const char *path, struct stat *ret, struct err *e)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret) < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	if (!S_ISREG(ret->st_mode) && !S_ISBLK(ret->st_mode))
		return err_set(e, -EINVAL, "\"%s\" is neither a regular file nor a block device",
			       path);
	if (S_ISREG(ret->st_mode) && ret->st_size == 0)
		return err_set(e, -EINVAL, "\"%s\" is empty (make a file system with mkfs.ext4)",
			       path);
	return TAKE_FD(fd);
}

static int reopen(int found, int flags)
{
	char self[sizeof("/proc/self/fd/") + 11];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	int fd = open(self, flags | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int in_use(const char *path, bool read_only, struct err *e)
{
	return err_set(e, -EBUSY, "\"%s\" is in use (%s)", path,
		       read_only ? "somebody writes to it"
				 : "only who has it with readOnly=true can share it");
}

int volume_source_open(const char *path, bool read_only, bool is_qcow2, struct err *e)
{
	struct stat st;
	cleanup_fd int found = look(path, &st, e);
	if (found < 0)
		return found;
	/* Of a device: fails if it is mounted. */
	int alone = S_ISBLK(st.st_mode) ? O_EXCL : 0;
	cleanup_fd int fd = reopen(found, read_only ? O_RDONLY : O_RDWR | alone);
	if (fd == -EBUSY)
		return in_use(path, read_only, e);
	if (fd < 0)
		return err_sys(e, fd, "\"%s\"", path);
	int r = read_only ? lock_try_shared(fd) : lock_try_exclusive(fd);
	if (r == LOCK_TAKEN)
		return in_use(path, read_only, e);
	if (r < 0)
		return err_sys(e, r, "\"%s\": cannot lock it", path);
	r = is_qcow2 ? check_qcow2(fd, path, e) : 0;
	return r < 0 ? r : TAKE_FD(fd);
}

/* ---- directories ---- */

int volume_source_find(const char *path)
{
	int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int volume_source_mount(int found, bool read_only, bool recursive)
{
	unsigned below = recursive ? AT_RECURSIVE : 0;
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0),
		.propagation = MS_PRIVATE,
	};
	struct stat st;
	cleanup_fd int fd =
		open_tree(found, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | below);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) /* it was one when it was looked at */
		return -ENOTDIR;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | below, &attr, sizeof(attr)) < 0)
		return -errno;
	return TAKE_FD(fd);
}
