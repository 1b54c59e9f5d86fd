/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/libvirt/domain_dir.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"

#define ENTER_ONLY ((mode_t)0711)
#define PRIVATE    ((mode_t)0700)

/* acl(5), as the kernel takes it: <linux/posix_acl_xattr.h>. */
#define ACL_NONE ((uint32_t)ACL_UNDEFINED_ID)

struct access_list {
	uint32_t version;
	struct posix_acl_xattr_entry entries[5];
};

static int root_path(const char *uuid, char ret[DOMAIN_DIR_MAX + 1])
{
	int n = snprintf(ret, DOMAIN_DIR_MAX + 1, DOMAIN_DIR_ROOT "/%s", uuid);
	return n > DOMAIN_DIR_MAX ? -ENAMETOOLONG : 0;
}

int domain_dir_path_of(int fd, char ret[PATH_MAX])
{
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

int domain_dir_path(int pod_fd, const char *uuid, char ret[DOMAIN_DIR_MAX + 1], struct err *e)
{
	char pod[PATH_MAX];
	if (geteuid() == 0)
		return root_path(uuid, ret);
	int r = domain_dir_path_of(pod_fd, pod);
	if (r < 0)
		return err_sys(e, r, "pod directory");
	int n = snprintf(ret, DOMAIN_DIR_MAX + 1, "%s/" DOMAIN_DIR_POD, pod);
	if (n > DOMAIN_DIR_MAX)
		ret[0] = '\0'; /* what fits would be another directory */
	if (n > DOMAIN_DIR_MAX)
		return err_set(e, -ENAMETOOLONG,
			       "libvirt: the path of the pod directory is too long for sockets in "
			       "it, at most %zu bytes: \"%s\" (give a shorter --dir)",
			       DOMAIN_DIR_MAX - sizeof(DOMAIN_DIR_POD), pod);
	return 0;
}

int domain_dir_make(const char *dir, struct err *e)
{
	int r = 0;
	if (geteuid() == 0 && mkdir(DOMAIN_DIR_ROOT, ENTER_ONLY) == 0)
		r = chmod(DOMAIN_DIR_ROOT, ENTER_ONLY) < 0 ? -errno : 0;
	if (r == 0)
		r = domain_dir_remove(dir);
	if (r == 0 && mkdir(dir, PRIVATE) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, r, "libvirt: cannot make the directory \"%s\"", dir) : 0;
}

int domain_dir_open_to(const char *dir, uid_t uid)
{
	const struct access_list list = {
		.version = htole32(POSIX_ACL_XATTR_VERSION),
		.entries = { { htole16(ACL_USER_OBJ), htole16(07), htole32(ACL_NONE) },
			     { htole16(ACL_USER), htole16(ACL_EXECUTE), htole32(uid) },
			     { htole16(ACL_GROUP_OBJ), 0, htole32(ACL_NONE) },
			     { htole16(ACL_MASK), htole16(ACL_EXECUTE), htole32(ACL_NONE) },
			     { htole16(ACL_OTHER), 0, htole32(ACL_NONE) } },
	};
	return setxattr(dir, "system.posix_acl_access", &list, sizeof(list), 0) < 0 ? -errno : 0;
}

static int file_path(const char *dir, const char *name, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);
	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/*
 * The mount has its flags before it is anywhere, so that every mount namespace to which that of the
 * directory propagates, the daemon's among them, gets it with them.
 */
static int mount_file(int fd, const char *from, const char *path, bool read_only)
{
	const unsigned to_place = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC |
					       (read_only ? MOUNT_ATTR_RDONLY : 0) };
	struct stat was, is;
	cleanup_fd int mount = open_tree(AT_FDCWD, from,
					 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (mount < 0 || fstat(fd, &was) < 0 || fstat(mount, &is) < 0)
		return -errno;
	if (was.st_dev != is.st_dev || was.st_ino != is.st_ino)
		return -ESTALE;
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	cleanup_fd int place = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (place < 0 || move_mount(mount, "", place, "", to_place) < 0)
		return -errno;
	return 0;
}

int domain_dir_put(const char *dir, const char *name, int fd, const char *path, bool read_only)
{
	char place[PATH_MAX];
	int r = file_path(dir, name, place);
	if (r < 0)
		return r;
	if (geteuid() == 0)
		return mount_file(fd, path, place, read_only);
	return symlink(path, place) < 0 ? -errno : 0;
}

int domain_dir_write(const char *dir, const char *name, const void *data, size_t len)
{
	cleanup_fd int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : file_write_at(fd, name, data, len, 0400);
}

int domain_dir_take(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int r = file_path(dir, name, path);
	if (r < 0)
		return r;
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno == EBUSY)
		return -errno; /* any other error: it is no mount, or not ours to unmount */
	return unlink(path) < 0 ? -errno : 0;
}

int domain_dir_empty(const char *dir)
{
	cleanup_dir DIR *d = opendir(dir);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	int r = 0;
	for (struct dirent *de; (de = readdir(d));) {
		bool is_file = strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
		int q = is_file ? domain_dir_take(dir, de->d_name) : 0;
		if (r == 0)
			r = q; /* what can go goes */
	}
	return r;
}

int domain_dir_remove(const char *dir)
{
	int r = domain_dir_empty(dir);
	return r < 0 ? r : rmdir(dir) < 0 && errno != ENOENT ? -errno : 0;
}

int domain_dir_remove_left(const char *uuid)
{
	char dir[DOMAIN_DIR_MAX + 1];
	int r = geteuid() == 0 ? root_path(uuid, dir) : -ENOENT;
	return r == -ENOENT ? 0 : r < 0 ? r : domain_dir_remove(dir);
}
