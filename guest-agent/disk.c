#include "guest-agent/disk.h"

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
	char name[NAME_MAX + 1];
	int seen = 0;
	for (struct dirent *d; (d = readdir(dir)) && seen < DISK_ENTRIES_MAX; seen++) {
		if (!is_lun(d->d_name, lun))
			continue;
		int r = block_name(dirfd(dir), d->d_name, name, sizeof(name));
		if (r < 0)
			return r;
		int n = snprintf(ret, size, "/dev/%s", name);
		return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	return -ENOENT;
}

static int find(const char *dir, int64_t lun, char ret[PATH_MAX])
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
	return access(ret, F_OK) < 0 ? -errno : 0; /* sysfs may be ahead of /dev */
}

int disk_wait(const char *dir, int64_t lun, char ret[PATH_MAX], struct fault *f)
{
	int64_t end = clock_monotonic_ns() + DISK_WAIT_MS * NS_PER_MS;
	int r;
	while ((r = find(dir, lun, ret)) == -ENOENT && clock_monotonic_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	if (r == -ENOENT)
		return fault_set(f, AGENT_E_DISK, "disk %lld: did not appear within %d s",
				 (long long)lun, DISK_WAIT_MS / 1000);
	if (r < 0)
		return fault_sys(f, AGENT_E_DISK, r, "disk %lld", (long long)lun);
	return 0;
}
