/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/app/appfs.h"
#include "guest-agent/app/disk.h"
#include "guest-agent/app/idmap.h"
#include "guest-agent/log.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

/* <sys/mount.h> and <linux/mount.h> of this age cannot be included together. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);

#define NEW "+new" /* a directory that is not complete; no volume is called so */

#define HOST_DIR   "host"
#define BLOCKS_DIR "blocks"

/* ---- making ---- */

/* The directory in which the volume is, below the run directory. */
static void parent_path(const struct rootfs_config *c, const char *app, const struct agent_mount *m,
			char *ret)
{
	bool in_memory = m->kind == AGENT_VOLUME_MEMORY;
	if (m->is_own)
		snprintf(ret, ROOTFS_PATH_MAX, "%s/%s/%s/%s", c->run_dir,
			 in_memory ? "apps" : "scratch", app, in_memory ? "memory" : "volumes");
	else
		snprintf(ret, ROOTFS_PATH_MAX, "%s/%s", c->run_dir,
			 in_memory ? "memory" : "scratch/+volumes");
}

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Makes and opens it. The caller's descriptor, or -errno. */
static int open_parent(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return open_dir(AT_FDCWD, path);
}

/* Under another name until it is as it is to be: the app may be killed while it makes it. */
static int make_directory(int parent, const struct agent_mount *m)
{
	if (mkdirat(parent, NEW, 0700) < 0 && errno != EEXIST)
		return -errno;
	cleanup_fd int dir = open_dir(parent, NEW);
	if (dir < 0)
		return dir;
	if (fchown(dir, (uid_t)m->uid, (gid_t)m->gid) < 0 || fchmod(dir, (mode_t)m->mode) < 0 ||
	    renameat(parent, NEW, parent, m->volume) < 0)
		return -errno;
	return 0;
}

static int mount_memory(const char *path, const struct agent_mount *m)
{
	char target[ROOTFS_PATH_MAX + AGENT_VOLUME_NAME_MAX + 1], options[128], size[32] = "";
	snprintf(target, sizeof(target), "%s/%s", path, m->volume);
	if (m->size > 0)
		snprintf(size, sizeof(size), ",size=%lld", (long long)m->size);
	snprintf(options, sizeof(options), "mode=%o,uid=%lld,gid=%lld%s", (unsigned)m->mode,
		 (long long)m->uid, (long long)m->gid, size);
	return mount("tmpfs", target, "tmpfs", MS_NODEV, options) < 0 ? -errno : 0;
}

/* In @parent, which is @path. */
static int make_volume(int parent, const char *path, const struct agent_mount *m)
{
	struct stat st, above;
	if (fstatat(parent, m->volume, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = errno == ENOENT ? make_directory(parent, m) : -errno;
		if (r < 0 || fstatat(parent, m->volume, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return r < 0 ? r : -errno;
	}
	if (m->kind != AGENT_VOLUME_MEMORY)
		return 0;
	if (fstat(parent, &above) < 0)
		return -errno;
	return st.st_dev == above.st_dev ? mount_memory(path, m) : 0;
}

/* ---- opening ---- */

/* Whether something is mounted on @path, below its parent @dir. */
static bool is_mounted(int dir, const char *name)
{
	struct stat st, above;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &above) == 0 &&
	       st.st_dev != above.st_dev;
}

static int clone_mount(int dir, const char *name, unsigned flags)
{
	int fd =
		(int)syscall(SYS_open_tree, dir, name, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_directory(const struct rootfs_config *c, const char *app,
			  const struct agent_mount *m)
{
	char path[ROOTFS_PATH_MAX];
	parent_path(c, app, m, path);
	cleanup_fd int parent = open_parent(path);
	if (parent < 0)
		return parent;
	int r = make_volume(parent, path, m);
	return r < 0 ? r : clone_mount(parent, m->volume, AT_SYMLINK_NOFOLLOW);
}

static int mount_host(const struct rootfs_config *c)
{
	char path[ROOTFS_PATH_MAX];
	snprintf(path, sizeof(path), "%s/", c->run_dir);
	cleanup_fd int run = open_dir(AT_FDCWD, path);
	if (run < 0)
		return run;
	snprintf(path, sizeof(path), "%s/" HOST_DIR, c->run_dir);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (!c->disk_dir && !is_mounted(run, HOST_DIR) &&
	    mount(AGENT_HOST_TAG, path, "virtiofs", MS_NODEV, NULL) < 0)
		return -errno;
	return 0;
}

/*
 * The kernel remembers names for a while. To make a directory fails, but it asks the host for a
 * name that it is to make, and unmounts what is mounted on one that is no more the same.
 */
static void look_anew(const char *path)
{
	mkdir(path, 0);
}

/*
 * Whether the host says of a name below @dir that it is not there. One that cannot even say that,
 * for lack of descriptors, would have the kernel unmount all that it is asked for.
 */
static bool is_answered(const char *dir)
{
	char path[ROOTFS_PATH_MAX + 2];
	snprintf(path, sizeof(path), "%s/+", dir);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* The same for all that is mounted on names below @dir. */
static void look_anew_below(const char *dir)
{
	char begin[ROOTFS_PATH_MAX + 2];
	cleanup_free char *line = NULL;
	size_t size = 0;
	if (!is_answered(dir))
		return;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		log_error("/proc/self/mountinfo: errno %d", errno);
	snprintf(begin, sizeof(begin), " %s/", dir);
	while (f && getline(&line, &size, f) > 0) {
		char *path = strstr(line, begin);
		if (!path)
			continue;
		path[1 + strcspn(path + 1, " ")] = '\0';
		look_anew(path + 1);
	}
	if (f)
		fclose(f);
}

void volumes_look_anew(const struct rootfs_config *c, const char *app)
{
	char path[ROOTFS_PATH_MAX];
	if (c->disk_dir)
		return;
	snprintf(path, sizeof(path), "%s/" HOST_DIR "/" AGENT_HOST_APPS "/%s", c->run_dir, app);
	look_anew(path);
	snprintf(path, sizeof(path), "%s/" HOST_DIR "/" AGENT_HOST_APPS "/" AGENT_HOST_SHARED,
		 c->run_dir);
	look_anew_below(path);
}

/*
 * Below the one virtiofs of the pod each volume is a file system of its own, which the kernel
 * mounts when somebody looks at it. One of an app is behind a link, and stays mounted for the next
 * app that has it, which shall find the same file system, until the host has taken it away.
 */
static int open_host(const struct rootfs_config *c, const char *app, const struct agent_mount *m)
{
	char path[ROOTFS_PATH_MAX + 24];
	int r = mount_host(c);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/" HOST_DIR "%s%s/%lld", c->run_dir,
		 m->is_own ? "/" AGENT_HOST_APPS "/" : "", m->is_own ? app : "",
		 (long long)m->slot);
	return clone_mount(AT_FDCWD, path, AT_RECURSIVE | (m->is_own ? 0 : AT_SYMLINK_NOFOLLOW));
}

/* Read-only if the disk is. EINVAL is what a file system says of a disk that is not its own. */
static int mount_disk(const char *disk, const char *target)
{
	static const char *const types[] = { "ext4", "squashfs", "erofs" };
	int r = -EINVAL;
	for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(types); i++) {
		r = mount(disk, target, types[i], MS_NODEV, NULL) < 0 ? -errno : 0;
		if (r == -EROFS || r == -EACCES)
			r = mount(disk, target, types[i], MS_NODEV | MS_RDONLY, NULL) < 0 ? -errno
											  : 0;
		if (r == -ENODEV && i > 0) /* kernels may lack it */
			r = -EINVAL;
	}
	return r;
}

static int open_block(const struct rootfs_config *c, const struct agent_mount *m, struct fault *f)
{
	char path[ROOTFS_PATH_MAX], slot[24], disk[PATH_MAX];
	snprintf(path, sizeof(path), "%s/" BLOCKS_DIR, c->run_dir);
	snprintf(slot, sizeof(slot), "%lld", (long long)m->slot);
	cleanup_fd int parent = open_parent(path);
	if (parent < 0)
		return parent;
	if (mkdirat(parent, slot, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (!is_mounted(parent, slot)) {
		if (disk_wait(c->disk_dir, AGENT_VOLUME_LUN + m->slot, disk, f) != 0)
			return -ENXIO;
		snprintf(path, sizeof(path), "%s/" BLOCKS_DIR "/%s", c->run_dir, slot);
		int r = mount_disk(disk, path);
		if (r < 0)
			return r;
	}
	return clone_mount(parent, slot, AT_SYMLINK_NOFOLLOW);
}

static int open_volume(const struct rootfs_config *c, const char *app, const struct agent_mount *m,
		       struct fault *f)
{
	if (m->kind == AGENT_VOLUME_HOST)
		return open_host(c, app, m);
	return m->kind == AGENT_VOLUME_BLOCK ? open_block(c, m, f) : open_directory(c, app, m);
}

/* Whether the owner of a directory that is to be made is why it cannot: FAULT_SET, or 0. */
static int check_owner(const struct agent_mount *m, struct fault *f)
{
	const gid_t gid = (gid_t)m->gid;
	int r = idmap_check_user((uid_t)m->uid, f);
	return r == 0 ? idmap_check_groups(&gid, 1, f) : r;
}

static int open_failed(const struct agent_mount *m, int r, struct fault *f)
{
	bool is_made = m->kind == AGENT_VOLUME_EMPTY || m->kind == AGENT_VOLUME_MEMORY;
	if (is_made && r == -EINVAL && check_owner(m, f) != 0)
		return FAULT_SET;
	if (m->kind == AGENT_VOLUME_BLOCK && r == -EINVAL)
		return fault_set(
			f, AGENT_E_DISK,
			"volume \"%s\": no file system is in there (make one with mkfs.ext4)",
			m->volume);
	if (m->kind == AGENT_VOLUME_BLOCK && r == -EROFS)
		return fault_set(f, AGENT_E_DISK,
				 "volume \"%s\": who had it last has not let go of it in order, so "
				 "it is to be written to first (give it once without readOnly)",
				 m->volume);
	return fault_sys(f, m->kind == AGENT_VOLUME_BLOCK ? AGENT_E_DISK : AGENT_E_INTERNAL, r,
			 "volume \"%s\": cannot %s it", m->volume,
			 m->kind == AGENT_VOLUME_EMPTY ? "make" : "mount");
}

/* Two apps may have the same one, and be added at the same time. The lock, or FAULT_SET. */
static int take_turn(const struct rootfs_config *c, struct fault *f)
{
	char turn[ROOTFS_PATH_MAX];
	snprintf(turn, sizeof(turn), "%s/scratch", c->run_dir);
	cleanup_fd int lock = open(turn, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot lock %s", turn);
	return TAKE_FD(lock);
}

/* Before any of them is opened: of an app of that name that is gone there may have been others. */
static void look_for_host(const struct rootfs_config *c, const char *app,
			  const struct agent_mounts *m)
{
	bool have = false;
	for (size_t i = 0; i < m->n; i++)
		have |= m->v[i].kind == AGENT_VOLUME_HOST && m->v[i].is_own;
	if (have)
		volumes_look_anew(c, app);
}

/* The app's own directory, or the root directory, which is mounted by now. */
static bool is_there(const struct agent_mount *m)
{
	return m->kind == AGENT_VOLUME_IMAGE || agent_mount_is_root(m);
}

int volumes_open(const struct rootfs_config *c, const char *app, const struct agent_mounts *m,
		 struct volume_fds *ret, struct fault *f)
{
	if (m->n == 0)
		return 0;
	cleanup_fd int lock = take_turn(c, f);
	if (lock < 0)
		return lock;
	look_for_host(c, app, m);
	for (; ret->n < m->n; ret->n++) {
		const struct agent_mount *one = &m->v[ret->n];
		int fd = is_there(one) ? -EBADF : open_volume(c, app, one, f);
		if (fd < 0 && fd != -EBADF)
			return open_failed(one, fd, f);
		ret->fds[ret->n] = fd;
	}
	return 0;
}

void volumes_close(struct volume_fds *v)
{
	while (v->n > 0)
		fd_close(v->fds[--v->n]);
}

/* ---- mounting ---- */

static bool is_same(int a, int b)
{
	struct stat sa, sb;
	return fstat(a, &sa) < 0 || fstat(b, &sb) < 0 ||
	       (sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino);
}

static bool is_file(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Where it is to be: a directory, or for a volume that is a file, one. */
static int make_target(int root, const char *path, int fd)
{
	return is_file(fd) ? appfs_make_file(root, path) : appfs_make_dir(root, path);
}

/*
 * With what is mounted below it, if there can be something. A namespace pod's disk is a directory
 * of a host's file system, which may have devices.
 */
static int set_attributes(int fd, const struct agent_mount *m, bool read_only)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NODEV | (m->read_only || read_only ? MOUNT_ATTR_RDONLY : 0) |
			    (m->no_exec ? MOUNT_ATTR_NOEXEC : 0) |
			    (m->no_suid ? MOUNT_ATTR_NOSUID : 0),
	};
	unsigned flags = AT_EMPTY_PATH | (m->kind == AGENT_VOLUME_HOST ? AT_RECURSIVE : 0);
	return syscall(SYS_mount_setattr, fd, "", flags, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int attach_volume(int root, const char *path, const struct agent_mount *m, int fd)
{
	cleanup_fd int target = make_target(root, path, fd);
	if (target < 0)
		return target;
	if (is_same(root, target)) /* by a link of the image */
		return -ELOOP;
	/* In front of what the whole root may become, and so not read-only with it. */
	cleanup_fd int own = fd < 0 ? clone_mount(target, "", AT_EMPTY_PATH) : -EBADF;
	int from = fd < 0 ? own : fd;
	if (from < 0)
		return from;
	int r = set_attributes(from, m, false);
	if (r < 0)
		return r;
	return syscall(SYS_move_mount, from, "", target, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int attach_failed(const struct agent_mount *m, int r, struct fault *f)
{
	if (r == -EISDIR)
		return fault_set(f, AGENT_E_PARAMS,
				 "volume \"%s\" is a file, and %s is a directory", m->volume,
				 m->path);
	if (r == -ENOTDIR)
		return fault_set(f, AGENT_E_PARAMS, "volume \"%s\": %s is no directory", m->volume,
				 m->path);
	return fault_sys(f, AGENT_E_INTERNAL, r, "volume \"%s\": cannot mount it at %s", m->volume,
			 m->path);
}

int volumes_attach(const struct volume_fds *v, const struct agent_mounts *m, bool in_dev,
		   const char *root, struct fault *f)
{
	static const char dev[] = "/dev";
	size_t above = in_dev ? strlen(dev) : 0;
	cleanup_fd int dir = v->n > 0 ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
	for (size_t i = 0; i < v->n; i++) {
		const struct agent_mount *one = &m->v[i];
		bool now = !agent_mount_is_root(one) &&
			   (str_starts(one->path, dev) && one->path[strlen(dev)] == '/') == in_dev;
		int r = now ? attach_volume(dir, one->path + above, one, v->fds[i]) : 0;
		if (r < 0)
			return attach_failed(one, r, f);
	}
	return 0;
}

int volumes_mount_root(const struct rootfs_config *c, const char *app, const struct agent_mount *m,
		       bool read_only, struct fault *f)
{
	char path[ROOTFS_PATH_MAX];
	cleanup_fd int lock = take_turn(c, f);
	if (lock < 0)
		return lock;
	if (m->is_own)
		volumes_look_anew(c, app);
	cleanup_fd int fd = open_host(c, app, m);
	int r = fd < 0 ? fd : is_file(fd) ? -EISDIR : set_attributes(fd, m, read_only);
	if (r == 0 && syscall(SYS_move_mount, fd, "", AT_FDCWD, rootfs_app_path(c, app, path),
			      MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	return r < 0 ? attach_failed(m, r, f) : 0;
}

/* ---- the end ---- */

void volumes_seal(const struct rootfs_config *c)
{
	char path[ROOTFS_PATH_MAX], target[ROOTFS_PATH_MAX + NAME_MAX + 2];
	snprintf(path, sizeof(path), "%s/" BLOCKS_DIR, c->run_dir);
	cleanup_dir DIR *dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));) {
		snprintf(target, sizeof(target), "%s/%.*s", path, NAME_MAX, d->d_name);
		if (d->d_name[0] == '.' || !is_mounted(dirfd(dir), d->d_name) ||
		    mount(NULL, target, NULL, MS_REMOUNT | MS_RDONLY | MS_NODEV, NULL) == 0)
			continue;
		log_error("%s: cannot be made read-only: errno %d", target, errno);
		cleanup_fd int fd = open_dir(AT_FDCWD, target);
		if (fd >= 0)
			syncfs(fd);
	}
}
