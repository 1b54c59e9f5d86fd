/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define POLL_NS INT64_C(2000000)

#define TARGET_0     "0 0 -" /* channel, target, all LUNs */
#define KERNEL_SCANS "sync"

/* True if @name is "H:C:T:L" with L equal to @lun. */
static bool is_lun(const char *name, int64_t lun)
{
	const char *last = name;
	for (int colons = 0; colons < 3; colons++) {
		last = strchr(last, ':');
		if (!last)
			return false;
		last++;
	}
	uint64_t n;
	return num_parse_u64(last, AGENT_LUN_MAX, &n) == 0 && (int64_t)n == lun;
}

/* The address of @lun, of at most NAME_MAX bytes, in @dir. 0 or -ENOENT. */
static int find_address(DIR *dir, int64_t lun, char ret[NAME_MAX + 1])
{
	struct dirent *d;
	for (int seen = 0; seen < DISK_ENTRIES_MAX && (d = readdir(dir)); seen++)
		if (is_lun(d->d_name, lun))
			return str_copy(ret, NAME_MAX + 1, d->d_name);
	return -ENOENT;
}

static int disk_put(int dir, const char *path, const char *text)
{
	cleanup_fd int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/*
 * A disk that is plugged meanwhile is found by the kernel or by us, since the kernel comes first.
 */
int disk_scan(const char *hosts, const char *scan_type)
{
	cleanup_dir DIR *dir = opendir(hosts);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	int result = disk_put(AT_FDCWD, scan_type, KERNEL_SCANS);
	struct dirent *d;
	for (int seen = 0; seen < DISK_ENTRIES_MAX && (d = readdir(dir)); seen++) {
		char path[NAME_MAX + sizeof("/scan")];
		if (!str_starts(d->d_name, "host"))
			continue;
		snprintf(path, sizeof(path), "%.*s/scan", NAME_MAX, d->d_name);
		int r = disk_put(dirfd(dir), path, TARGET_0);
		if (r < 0)
			result = r;
	}
	return result;
}

bool disk_is_known(const char *sysfs, int64_t lun)
{
	cleanup_dir DIR *dir = opendir(sysfs);
	char address[NAME_MAX + 1];
	return dir && find_address(dir, lun, address) == 0;
}

/* The one entry of sysfs/ADDRESS/block. */
static int block_name(int sysfs_fd, const char *address, char *ret, size_t size)
{
	char path[NAME_MAX + sizeof("/block")];
	snprintf(path, sizeof(path), "%.*s/block", NAME_MAX, address);
	int fd = openat(sysfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	cleanup_dir DIR *dir = fd_open_dir(fd);
	if (!dir)
		return -errno;
	for (struct dirent *d; (d = readdir(dir));)
		if (d->d_name[0] != '.')
			return str_copy(ret, size, d->d_name);
	return -ENOENT;
}

int disk_lookup(const char *sysfs, int64_t lun, char *ret, size_t size)
{
	cleanup_dir DIR *dir = opendir(sysfs);
	if (!dir)
		return -errno;
	char address[NAME_MAX + 1], name[NAME_MAX + 1];
	int r = find_address(dir, lun, address);
	if (r == 0)
		r = block_name(dirfd(dir), address, name, sizeof(name));
	if (r < 0)
		return r;
	int n = snprintf(ret, size, "/dev/%s", name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int disk_forget(const char *sysfs, int64_t lun)
{
	cleanup_dir DIR *dir = opendir(sysfs);
	if (!dir)
		return -errno;
	char address[NAME_MAX + 1], path[NAME_MAX + sizeof("/delete")];
	if (find_address(dir, lun, address) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/delete", address);
	cleanup_fd int fd = openat(dirfd(dir), path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fd_write_all(fd, "1", 1);
}

static int disk_find(const char *dir, int64_t lun, char ret[PATH_MAX])
{
	if (!dir) {
		int r = disk_lookup(DISK_SYSFS, lun, ret, PATH_MAX);
		if (r < 0)
			return r;
	} else {
		int n = snprintf(ret, PATH_MAX, "%s/%lld", dir, (long long)lun);
		if (n < 0 || n >= PATH_MAX)
			return -ENAMETOOLONG;
	}
	/* sysfs may be ahead of /dev, and /dev of the disk itself, which then says ENXIO. */
	cleanup_fd int fd = open(ret, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENXIO ? -ENOENT : -errno;
	return 0;
}

int disk_wait(const char *dir, int64_t lun, char ret[PATH_MAX], struct fault *f)
{
	int64_t end = clock_monotonic_ns() + DISK_WAIT_MS * NS_PER_MS;
	int r;
	while ((r = disk_find(dir, lun, ret)) == -ENOENT && clock_monotonic_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	if (r == -ENOENT)
		return fault_set(f, AGENT_E_DISK, "disk %lld: did not appear within %d s",
				 (long long)lun, DISK_WAIT_MS / 1000);
	if (r < 0)
		return fault_sys(f, AGENT_E_DISK, r, "disk %lld", (long long)lun);
	return 0;
}
