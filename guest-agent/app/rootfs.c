/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "guest-agent/app/disk.h"
#include "guest-agent/app/in_root.h"
#include "guest-agent/log.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/rmtree.h"
#include "lib/wire/net_names.h"

#define SCRATCH_FLAGS (MS_NODEV | MS_NOATIME)

struct app_dirs {
	char app[ROOTFS_PATH_MAX], lower[ROOTFS_PATH_MAX], extra[ROOTFS_PATH_MAX];
	char root[ROOTFS_PATH_MAX];
	char scratch[ROOTFS_PATH_MAX], upper[ROOTFS_PATH_MAX], work[ROOTFS_PATH_MAX];
};

/* The name in front of @sub is bounded by the protocol, the run directory by the program. */
static void fill_dirs(const struct rootfs_config *c, const char *app, struct app_dirs *d)
{
	snprintf(d->app, ROOTFS_PATH_MAX, "%s/apps/%s", c->run_dir, app);
	snprintf(d->lower, ROOTFS_PATH_MAX, "%s/apps/%s/lower", c->run_dir, app);
	snprintf(d->extra, ROOTFS_PATH_MAX, "%s/apps/%s/extra", c->run_dir, app);
	snprintf(d->root, ROOTFS_PATH_MAX, "%s/apps/%s/root", c->run_dir, app);
	snprintf(d->scratch, ROOTFS_PATH_MAX, "%s/scratch/%s", c->run_dir, app);
	snprintf(d->upper, ROOTFS_PATH_MAX, "%s/scratch/%s/upper", c->run_dir, app);
	snprintf(d->work, ROOTFS_PATH_MAX, "%s/scratch/%s/work", c->run_dir, app);
}

const char *rootfs_app_path(const struct rootfs_config *c, const char *app, char *ret)
{
	snprintf(ret, ROOTFS_PATH_MAX, "%s/apps/%s/root", c->run_dir, app);
	return ret;
}

const char *rootfs_empty_path(const struct rootfs_config *c, char *ret)
{
	snprintf(ret, ROOTFS_PATH_MAX, "%s/empty", c->run_dir);
	return ret;
}

static int make_dir(const char *path, struct fault *f)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create %s", path);
	return 0;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int mount_tmpfs_scratch(const char *target, struct fault *f)
{
	if (mount("tmpfs", target, "tmpfs", MS_NODEV, "mode=0755") < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount a tmpfs for scratch");
	return 0;
}

int rootfs_mount_scratch(const struct rootfs_config *c, int64_t lun, struct fault *f)
{
	char target[ROOTFS_PATH_MAX], disk[PATH_MAX];
	snprintf(target, sizeof(target), "%s/scratch", c->run_dir);
	int r = make_dir(target, f);
	if (r != 0)
		return r;
	if (lun < 0)
		return mount_tmpfs_scratch(target, f);
	r = disk_wait(c->disk_dir, lun, disk, f);
	if (r != 0)
		return r;
	/*
	 * Else a kernel thread would write the inode tables of a sparse disk and read its bitmaps,
	 * and each block that is allocated would be looked up among those of the file system
	 * itself.
	 */
	if (is_directory(disk))
		r = mount(disk, target, NULL, MS_BIND, NULL);
	else
		r = mount(disk, target, "ext4", SCRATCH_FLAGS,
			  "noinit_itable,no_prefetch_block_bitmaps,noblock_validity");
	if (r < 0)
		return fault_sys(f, AGENT_E_DISK, errno, "disk %lld: cannot mount it",
				 (long long)lun);
	return 0;
}

static const char *shm_path(const struct rootfs_config *c, char *ret)
{
	snprintf(ret, ROOTFS_PATH_MAX, "%s/shm", c->run_dir);
	return ret;
}

int rootfs_mount_shm(const struct rootfs_config *c, struct fault *f)
{
	char path[ROOTFS_PATH_MAX];
	int r = make_dir(shm_path(c, path), f);
	if (r == 0 &&
	    mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777") < 0)
		r = fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", path);
	return r;
}

int rootfs_open_shm(const struct rootfs_config *c)
{
	char path[ROOTFS_PATH_MAX];
	int fd = open_tree(AT_FDCWD, shm_path(c, path), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Asks the kernel rather than reading the disk here: the superblock is parsed once. EINVAL is what
 * a file system says of a disk that is not its own.
 */
static int mount_image(const char *disk, const char *target)
{
	static const char *const types[] = { "squashfs", "erofs" };
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (mount(disk, target, types[i], MS_RDONLY | MS_NODEV, NULL) == 0)
			return 0;
		if (errno != EINVAL && (i == 0 || errno != ENODEV)) /* kernels may lack erofs */
			return -errno;
	}
	return -EMEDIUMTYPE;
}

static int mount_lower(const struct rootfs_config *c, int64_t lun, const char *target,
		       struct fault *f)
{
	char disk[PATH_MAX];
	int r = disk_wait(c->disk_dir, lun, disk, f);
	if (r != 0)
		return r;
	if (is_directory(disk))
		r = mount(disk, target, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
	else
		r = mount_image(disk, target);
	if (r == -EMEDIUMTYPE)
		return fault_set(f, AGENT_E_DISK,
				 "disk %lld: neither squashfs nor erofs: not a rendered image",
				 (long long)lun);
	if (r < 0)
		return fault_sys(f, AGENT_E_DISK, r, "disk %lld: cannot mount the image",
				 (long long)lun);
	return 0;
}

/*
 * What the other file system cannot hold is left out: an app can live without. And so is what would
 * tell the overlay something, which is for us to say and not for the image.
 */
static void copy_xattrs(int from, int to)
{
	static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
	ssize_t len = flistxattr(from, names, sizeof(names));
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (str_starts(names + at, "trusted.overlay.") ||
		    str_starts(names + at, "user.overlay."))
			continue;
		ssize_t size = fgetxattr(from, names + at, value, sizeof(value));
		if (size >= 0)
			fsetxattr(to, names + at, value, (size_t)size, 0);
	}
}

/*
 * An overlay shows the attributes of the uppermost of the directories that it merges: gives one
 * those of the image's.
 */
static int copy_attributes(int from, int to)
{
	struct stat st, old;
	if (from < 0 || to < 0)
		return -EBADF;
	if (fstat(from, &st) < 0 || fstat(to, &old) < 0)
		return -errno;
	if ((st.st_uid != old.st_uid || st.st_gid != old.st_gid) &&
	    fchown(to, st.st_uid, st.st_gid) < 0)
		return -errno;
	/* Also if the owner has changed, which may take set-ID bits away. */
	if ((st.st_mode != old.st_mode || st.st_mode & (S_ISUID | S_ISGID)) &&
	    fchmod(to, st.st_mode & 07777) < 0)
		return -errno;
	copy_xattrs(from, to);
	return 0;
}

/* The same for the time, after all that is put into the directory. */
static int copy_time(int from, int to)
{
	struct stat st;
	if (fstat(from, &st) < 0)
		return -errno;
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, st.st_mtim };
	return futimens(to, times) < 0 ? -errno : 0;
}

static bool is_missing(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Writes a new file; what is there, even a dangling link, stays. */
static void add_file(int dir, const char *name, const char *text)
{
	cleanup_fd int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0)
		fd_write_all(fd, text, strlen(text));
}

/* Appends the image's own file: a regular one that leaves room for what is added. */
static int read_hosts(int lower_etc, struct buf *ret)
{
	char *where;
	size_t len;
	struct stat st;
	cleanup_fd int fd = openat(lower_etc, "hosts",
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	int r = st.st_size > (off_t)NET_HOSTS_TEXT_MAX / 2 ? -EFBIG : 0;
	if (r == 0)
		r = buf_reserve(ret, (size_t)st.st_size, &where);
	if (r == 0)
		r = fd_read_full(fd, where, (size_t)st.st_size, &len);
	if (r == 0)
		buf_commit(ret, len);
	return r;
}

/*
 * Images bring their maker's file, in which the pod's name is missing: it is added, and what is
 * there stays.
 */
static void add_hosts(int lower_etc, int extra_etc, const struct rootfs_names *n)
{
	static const struct strv none;
	cleanup_buf struct buf text;
	buf_init(&text, NET_HOSTS_TEXT_MAX);
	if (n->hosts) {
		add_file(extra_etc, "hosts", n->hosts);
		return;
	}
	int r = read_hosts(lower_etc, &text) == 0 ? net_hosts_complete(n->hostname, &text)
						  : net_hosts_format(n->hostname, &none, &text);
	if (r == 0 && buf_append(&text, "", 1) == 0)
		add_file(extra_etc, "hosts", buf_data(&text));
}

/* What is given covers the image's, whatever that is: the layer lies above it. */
static void add_etc_files(int lower_etc, int extra_etc, const struct rootfs_names *n)
{
	char text[AGENT_HOSTNAME_MAX + 2];
	if (is_missing(lower_etc, "mtab") &&
	    symlinkat("../proc/self/mounts", extra_etc, "mtab") < 0)
		return;
	snprintf(text, sizeof(text), "%s\n", n->hostname);
	add_file(extra_etc, "hostname", text);
	add_hosts(lower_etc, extra_etc, n);
	if (n->resolv_conf)
		add_file(extra_etc, "resolv.conf", n->resolv_conf);
}

static int add_dir(int lower, int extra, const char *name, mode_t mode)
{
	if (!is_missing(lower, name))
		return 0;
	return mkdirat(extra, name, 0755) < 0 || fchmodat(extra, name, mode, 0) < 0 ? -errno : 0;
}

/*
 * Fills the layer between the image and what the app writes with what the image lacks. It lives in
 * memory: a file on the scratch disk would cost milliseconds at each start and end. If the image's
 * /etc is a link or a file, the image is left as it is. An app cannot live without these files only
 * by its own choice, so failures are ignored; where a mount point is missing, the mount says so.
 */
static void add_files(const struct app_dirs *d, const struct rootfs_names *n)
{
	static const char *const mount_points[] = { "dev", "proc", "sys" };
	cleanup_fd int lower = open(d->lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int extra = open(d->extra, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++)
		add_dir(lower, extra, mount_points[i], 0755);
	if (add_dir(lower, extra, "tmp", 01777) < 0)
		return;
	cleanup_fd int lower_etc =
		openat(lower, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lower_etc < 0 && !is_missing(lower, "etc"))
		return;
	if (mkdirat(extra, "etc", 0755) < 0 && errno != EEXIST)
		return;
	cleanup_fd int extra_etc =
		openat(extra, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (extra_etc < 0)
		return;
	add_etc_files(lower_etc >= 0 ? lower_etc : extra_etc, extra_etc, n);
	if (lower_etc >= 0 && copy_attributes(lower_etc, extra_etc) == 0)
		copy_time(lower_etc, extra_etc);
}

static int make_dirs(const char *const *dirs, size_t n, struct fault *f)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = make_dir(dirs[i], f);
	return r;
}

int rootfs_make_app(const struct rootfs_config *c, const char *app, struct fault *f)
{
	struct app_dirs d = { 0 };
	const char *const dirs[] = { d.app, d.root, d.scratch };
	fill_dirs(c, app, &d);
	return make_dirs(dirs, ARRAY_SIZE(dirs), f);
}

/* Fills the directories above the image, and mounts all as one. */
static int merge_layers(const struct rootfs_config *c, const struct app_dirs *d,
			const struct rootfs_names *names)
{
	/*
	 * Who is no root of the host writes no attributes "trusted.*"; and its kernel may be older
	 * than "uuid=null".
	 */
	const char *how = c->disk_dir ? "userxattr" : "uuid=null";
	char options[4 * ROOTFS_PATH_MAX + 80];
	cleanup_fd int lower = open(d->lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int upper = open(d->upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = copy_attributes(lower, upper);
	if (r < 0)
		return r;
	add_files(d, names);
	r = copy_time(lower, upper);
	if (r < 0)
		return r;
	snprintf(options, sizeof(options), "lowerdir=%s:%s,upperdir=%s,workdir=%s,%s", d->extra,
		 d->lower, d->upper, d->work, how);
	return mount("overlay", d->root, "overlay", MS_NODEV, options) < 0 ? -errno : 0;
}

int rootfs_mount_app(const struct rootfs_config *c, const char *app, int64_t lun,
		     const struct rootfs_names *names, struct fault *f)
{
	struct app_dirs d = { 0 };
	const char *const dirs[] = { d.app, d.lower, d.extra, d.root, d.scratch, d.upper, d.work };
	fill_dirs(c, app, &d);
	int r = make_dirs(dirs, ARRAY_SIZE(dirs), f);
	if (r == 0)
		r = mount_lower(c, lun, d.lower, f);
	if (r != 0)
		return r;
	r = merge_layers(c, &d, names);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot mount an overlay for \"%s\"", app)
		     : 0;
}

static int path_owner(void *ctx, const char *path, uid_t *ret_uid, gid_t *ret_gid)
{
	struct stat st;
	cleanup_fd int fd = open_in_root(*(const int *)ctx, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_uid = st.st_uid;
	*ret_gid = st.st_gid;
	return 0;
}

/* Reads a file of the image, which the caller frees; *ret stays NULL if it has none. */
static int read_image_file(int root, const char *path, char **ret, size_t *ret_len, struct fault *f)
{
	struct stat st;
	cleanup_fd int fd = open_in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_sys(f, AGENT_E_USER, fd < 0 ? fd : errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)IDS_FILE_MAX)
		return fault_set(f, AGENT_E_USER, "%s: no regular file of at most %zu bytes", path,
				 IDS_FILE_MAX);
	cleanup_free char *text = malloc((size_t)st.st_size + 1);
	int r = text ? fd_read_full(fd, text, (size_t)st.st_size, ret_len) : -ENOMEM;
	if (r < 0)
		return fault_sys(f, AGENT_E_USER, r, "cannot read %s", path);
	*ret = TAKE_PTR(text);
	return 0;
}

static bool is_root(const char *id)
{
	return !id[0] || strcmp(id, "0") == 0;
}

static void resolve_root(struct ids_source *src, int root, struct ids *ret)
{
	struct fault ignored = { 0 };
	cleanup_free char *passwd = NULL;
	*ret = (struct ids){ 0 };
	if (read_image_file(root, "/etc/passwd", &passwd, &src->passwd_len, &ignored) != 0)
		return;
	src->passwd = passwd;
	if (ids_resolve(src, "0", "0", ret, &ignored) != 0)
		*ret = (struct ids){ 0 };
	src->passwd = NULL;
}

int rootfs_resolve_ids(const struct rootfs_config *c, const char *app, const char *user,
		       const char *group, struct ids *ret, struct fault *f)
{
	struct app_dirs d = { 0 };
	fill_dirs(c, app, &d);
	cleanup_fd int root = open(d.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot open %s", d.root);
	struct ids_source src = { .owner = path_owner, .ctx = &root };
	if (is_root(user) && is_root(group)) {
		resolve_root(&src, root, ret);
		return 0;
	}
	cleanup_free char *passwd = NULL, *groups = NULL;
	int r = read_image_file(root, "/etc/passwd", &passwd, &src.passwd_len, f);
	if (r == 0)
		r = read_image_file(root, "/etc/group", &groups, &src.group_len, f);
	src.passwd = passwd;
	src.group = groups;
	return r == 0 ? ids_resolve(&src, user, group, ret, f) : r;
}

static void unmount_if_mounted(const char *target)
{
	if (umount2(target, 0) < 0 && errno == EBUSY) {
		log_error("%s: still in use", target);
		umount2(target, MNT_DETACH);
	}
}

/* A volume, to which no image belongs, may have something mounted below, which nobody uses now. */
static void unmount_root(const struct app_dirs *d)
{
	if (access(d->lower, F_OK) == 0)
		unmount_if_mounted(d->root);
	else
		umount2(d->root, MNT_DETACH);
}

void rootfs_unmount_root(const struct rootfs_config *c, const char *app)
{
	struct app_dirs d = { 0 };
	fill_dirs(c, app, &d);
	unmount_root(&d);
}

/* The volumes that the app has to itself. */
static void unmount_memory(const struct rootfs_config *c, const char *app)
{
	char path[ROOTFS_PATH_MAX], target[ROOTFS_PATH_MAX + NAME_MAX + 2];
	snprintf(path, sizeof(path), "%s/apps/%s/memory", c->run_dir, app);
	cleanup_dir DIR *dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));) {
		snprintf(target, sizeof(target), "%s/%.*s", path, NAME_MAX, d->d_name);
		if (d->d_name[0] != '.')
			unmount_if_mounted(target);
	}
}

static void unmount_app(const struct rootfs_config *c, const char *app)
{
	struct app_dirs d = { 0 };
	fill_dirs(c, app, &d);
	unmount_memory(c, app);
	unmount_root(&d);
	unmount_if_mounted(d.lower);
}

/* Deletes directory @parent/@app of the run directory. */
static int remove_dir(const struct rootfs_config *c, const char *parent, const char *app,
		      struct fault *f)
{
	char path[ROOTFS_PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", c->run_dir, parent);
	cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : rmtree(dir, app);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot delete %s/%s", path, app) : 0;
}

static int remove_dirs(const struct rootfs_config *c, const char *app, struct fault *f)
{
	int r = remove_dir(c, "apps", app, f);
	return r == 0 ? remove_dir(c, "scratch", app, f) : r;
}

void rootfs_discard_app(const struct rootfs_config *c, const char *app)
{
	struct fault f;
	unmount_app(c, app);
	if (remove_dirs(c, app, &f) != 0)
		log_error("%s", f.text);
}

/*
 * Blocks that are free are of no use to the guest while the host stores them. Not all disks can do
 * it.
 */
static void trim_scratch(const struct rootfs_config *c)
{
	char path[ROOTFS_PATH_MAX];
	struct fstrim_range all = { .len = UINT64_MAX };
	snprintf(path, sizeof(path), "%s/scratch", c->run_dir);
	cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && syncfs(dir) == 0)
		ioctl(dir, FITRIM, &all);
}

int rootfs_remove_app(const struct rootfs_config *c, const char *app, int64_t lun, struct fault *f)
{
	unmount_app(c, app);
	int r = remove_dirs(c, app, f);
	if (r != 0)
		return r;
	if (c->disk_dir)
		return 0;
	trim_scratch(c);
	r = disk_forget(DISK_SYSFS, lun);
	return r < 0 ? fault_sys(f, AGENT_E_DISK, r, "disk %lld: cannot remove it", (long long)lun)
		     : 0;
}

int rootfs_seal_scratch(const struct rootfs_config *c)
{
	char target[ROOTFS_PATH_MAX];
	if (c->disk_dir) /* the file system is the host's, which writes it when it likes */
		return 0;
	snprintf(target, sizeof(target), "%s/scratch", c->run_dir);
	return mount(NULL, target, NULL, MS_REMOUNT | MS_RDONLY | SCRATCH_FLAGS, NULL) < 0 ? -errno
											   : 0;
}

int rootfs_unmount_scratch(const struct rootfs_config *c, struct fault *f)
{
	char target[ROOTFS_PATH_MAX];
	snprintf(target, sizeof(target), "%s/scratch", c->run_dir);
	cleanup_fd int fd = c->disk_dir ? -EBADF : open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		syncfs(fd);
	fd_replace(&fd, -EBADF);
	if (umount2(target, 0) == 0 || errno == EINVAL || errno == ENOENT)
		return 0;
	int r = errno;
	umount2(target, MNT_DETACH);
	return fault_sys(f, AGENT_E_INTERNAL, r, "cannot unmount the scratch disk");
}
