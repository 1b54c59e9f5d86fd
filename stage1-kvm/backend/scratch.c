/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "stage1/pod/mkfs.h"
#include "stage1/pod/podfiles.h"

/* Of what this makes: another one asks for new templates. */
#define TEMPLATE_VERSION "4"

/*
 * Makes the template; it gets its name when it is complete, so a maker that is killed leaves none.
 */
static int make_template(int cache, const char *name, uint64_t size, struct err *e)
{
	char self[sizeof("/proc/self/fd/") + 11];
	cleanup_fd int fd = openat(cache, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	int r = mkfs_ext4(fd, "scratch disk", e);
	if (r < 0)
		return r;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fsync(fd) < 0 || linkat(AT_FDCWD, self, cache, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(e, -errno, "scratch disk: template");
	return 0;
}

/* Opens the template, making it if this is the first pod of the host. */
static int open_template(const char *cache_dir, uint64_t size, struct err *e)
{
	cleanup_fd int cache = path_make_dirs(cache_dir, 0750);
	if (cache < 0)
		return err_sys(e, cache, "directory \"%s\"", cache_dir);
	char name[64];
	snprintf(name, sizeof(name), "scratch-%ju.v" TEMPLATE_VERSION ".ext4", (uintmax_t)size);
	int fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	int r = lock_exclusive(cache); /* one maker at a time; the others find it made */
	if (r < 0)
		return err_sys(e, r, "directory \"%s\": cannot lock", cache_dir);
	fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	r = make_template(cache, name, size, e);
	if (r < 0)
		return r;
	fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(e, -errno, "scratch disk: template") : fd;
}

int scratch_create(int pod_fd, const char *cache_dir, uint64_t size, struct err *e)
{
	cleanup_fd int template = open_template(cache_dir, size, e);
	if (template <0)
		return template;
	cleanup_fd int fd =
		openat(pod_fd, POD_FILE_SCRATCH, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_copy_sparse(template, fd);
	if (r < 0) {
		if (fd >= 0)
			unlinkat(pod_fd, POD_FILE_SCRATCH, 0);
		return err_sys(e, r, "scratch disk: cannot create it in the pod directory");
	}
	return TAKE_FD(fd);
}
