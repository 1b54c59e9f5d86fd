/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The apps of a pod share a kernel, so what could reach another app or the kernel through /proc and
 * /sys is read-only or hidden here, as rkt does. All paths are looked up after the change of root:
 * a hostile link in the image leads to another place in the same image. What is mounted is mounted
 * on directories, never on what a link leads to.
 *
 * That holds of an image, which nobody changes meanwhile. Where the root directory is one of the
 * host, all is mounted and protected in a file system of the process's own beside it, and then
 * moved to where it belongs: what others do to the root directory in between has /proc be somewhere
 * else, but never /proc without what protects it.
 */
#include "guest-agent/app/appfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "guest-agent/app/in_root.h"
#include "guest-agent/app/rootfs.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

/* <sys/mount.h> and <linux/mount.h> of this age cannot be included together. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);
int umount2(const char *target, int flags);
#define UMOUNT_DETACH 2

#define HARMLESS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

#define BESIDE "/root" /* where the root directory waits for what appfs_mount() makes */

#define PLACE (O_PATH | O_DIRECTORY | O_NOFOLLOW)

static const char *const tops[] = { "/proc", "/sys", "/dev" };

int appfs_unshare(bool with_cgroup, struct fault *f)
{
	if (unshare(CLONE_NEWNS | (with_cgroup ? CLONE_NEWCGROUP : 0)) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create a mount namespace");
	return 0;
}

int appfs_enter(const char *root, int *old_root, struct fault *f)
{
	if (old_root && (*old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot open the old root");
	/* pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one. */
	if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    (!old_root && umount2(".", UMOUNT_DETACH) < 0) || chdir("/") < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot change to the app's root");
	return 0;
}

/* A file system for what appfs_mount() makes, and the root directory in it. */
static int mount_beside(const char *root, const char *empty)
{
	char place[ROOTFS_PATH_MAX + sizeof(BESIDE)];
	snprintf(place, sizeof(place), "%s" BESIDE, empty);
	if ((mkdir(empty, 0755) < 0 && errno != EEXIST) ||
	    mount("tmpfs", empty, "tmpfs", HARMLESS, "mode=0755,size=64k,nr_inodes=16") < 0 ||
	    mkdir(place, 0755) < 0)
		return -1;
	return mount(root, place, NULL, MS_MOVE, NULL);
}

int appfs_enter_beside(const char *root, const char *empty, int *old_root, struct fault *f)
{
	if (mount_beside(root, empty) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot prepare the app's root");
	return appfs_enter(empty, old_root, f);
}

/*
 * The directory @name of the root directory @root, made if it is missing, also if another app makes
 * it at the same time; or -1 and errno.
 */
static int open_place(int root, const char *name)
{
	int fd = openat(root, name, PLACE | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT || (mkdirat(root, name, 0755) < 0 && errno != EEXIST))
		return fd;
	return openat(root, name, PLACE | O_CLOEXEC);
}

int appfs_settle(struct fault *f)
{
	cleanup_fd int root = open(BESIDE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		cleanup_fd int place = open_place(root, tops[i] + 1);
		if (place < 0 && (errno == ENOTDIR || errno == EROFS))
			return fault_set(f, AGENT_E_INTERNAL,
					 "cannot mount %s: the root directory has %s there (make "
					 "it a directory)",
					 tops[i],
					 errno == EROFS ? "nothing" : "a file or a symbolic link");
		if (place < 0 || syscall(SYS_move_mount, AT_FDCWD, tops[i], place, "",
					 MOVE_MOUNT_T_EMPTY_PATH) < 0)
			return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", tops[i]);
	}
	return appfs_enter(BESIDE, NULL, f);
}

static int leave_old_root(int fd, struct fault *f)
{
	if (fchdir(fd) < 0 || umount2(".", UMOUNT_DETACH) < 0 || chdir("/") < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot leave the old root");
	return 0;
}

struct app_mount {
	const char *target, *type;
	unsigned long flags;
	const char *options;
	bool optional; /* the kernel may lack it */
};

static const struct app_mount app_mounts[] = {
	{ "/proc", "proc", HARMLESS, NULL, false },
	{ "/dev", "tmpfs", MS_NOSUID, "mode=0755,size=64k,nr_inodes=128", false },
	{ "/dev/mqueue", "mqueue", HARMLESS, NULL, true },
};

/*
 * Hidden: what describes or steers the machine, or says where the kernel has what, rather than the
 * pod.
 */
static const char *const hidden_dirs[] = {
	"/sys/devices/virtual/block", /* tells of the files of the host that loop devices show */
	"/sys/firmware",
	"/sys/hypervisor",
	"/sys/kernel/debug",
	"/sys/kernel/security",
	"/sys/kernel/slab",
	"/sys/kernel/tracing",
	"/sys/module",
	"/sys/power",
	"/proc/acpi",
	"/proc/asound",
	"/proc/dynamic_debug",
	"/proc/scsi",
	"/sys/devices/virtual/powercap",
};
static const char *const hidden_files[] = {
	"/proc/allocinfo",   "/proc/config.gz",
	"/proc/iomem",       "/proc/ioports",
	"/proc/kallsyms",    "/proc/kcore",
	"/proc/keys",        "/proc/kmem",
	"/proc/kpagecgroup", "/proc/kpagecount",
	"/proc/kpageflags",  "/proc/latency_stats",
	"/proc/mem",         "/proc/pagetypeinfo",
	"/proc/sched_debug", "/proc/slabinfo",
	"/proc/timer_list",  "/proc/timer_stats",
	"/proc/vmallocinfo", "/proc/vmcore",
	"/sys/kernel/notes", "/sys/kernel/vmcoreinfo",
};
/*
 * All of /proc/sys: what is in there is the kernel's, and so every app's, or the pod's network and
 * IPC, which the apps share. With fs.suid_dumpable an app could open new processes to itself
 * (launch.c).
 */
static const char *const readonly_paths[] = {
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

static const struct {
	const char *path;
	unsigned major, minor;
} devices[] = {
	{ "/dev/null", 1, 3 },       { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
	{ "/dev/random", 1, 8 },     { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
	{ "/dev/net/tun", 10, 200 },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "/dev/fd", "/proc/self/fd" },       { "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },
};

/*
 * What is protected is looked up behind these mounts, so they must be where they are called. A link
 * in the image could name a place that is another one, or none, when /dev has been mounted: then
 * /proc would be somewhere, with nothing in it protected. Nobody can put a link there now: no
 * process of the app runs.
 */
static int check_target(const char *path, struct fault *f)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", path);
	if (S_ISDIR(st.st_mode))
		return 0;
	return fault_set(f, AGENT_E_INTERNAL,
			 "cannot mount %s: the image has %s there (make it a directory)", path,
			 S_ISLNK(st.st_mode) ? "a symbolic link" : "a file");
}

static int make_target(const char *path, struct fault *f)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create %s", path);
	return check_target(path, f);
}

static int mount_one(const struct app_mount *m, struct fault *f)
{
	int r = make_target(m->target, f);
	if (r != 0)
		return r;
	if (mount(m->type, m->target, m->type, m->flags, m->options) == 0)
		return 0;
	if (m->optional && errno == ENODEV)
		return 0;
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", m->target);
}

/* A mount of the agent's own root, at the same place. 0, or -1 and errno. */
static int bind_from(int old_root, const char *path)
{
	cleanup_fd int fd = (int)syscall(SYS_open_tree, old_root, path + 1,
					 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -1
		      : (int)syscall(SYS_move_mount, fd, "", AT_FDCWD, path,
				     MOVE_MOUNT_F_EMPTY_PATH);
}

/*
 * Read-only in the end. It shows the network, and so root of a user namespace cannot mount it if
 * that is somebody else's: the agent's own is the same.
 */
static int mount_sysfs(int old_root, struct fault *f)
{
	static const struct app_mount sysfs = { "/sys", "sysfs", HARMLESS, NULL, false };
	if (old_root < 0)
		return mount_one(&sysfs, f);
	int r = make_target(sysfs.target, f);
	return r == 0 && bind_from(old_root, sysfs.target) < 0
		       ? fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", sysfs.target)
		       : r;
}

static int attach_shm(int shm_fd, struct fault *f)
{
	static const char path[] = "/dev/shm";
	int r = make_target(path, f);
	if (r == 0 &&
	    syscall(SYS_move_mount, shm_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount %s", path);
	return r;
}

static int mount_devpts(int devpts_fd, struct fault *f)
{
	static const struct app_mount plain = { "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
						"ptmxmode=0666,mode=0620,gid=5", false };
	if (devpts_fd < 0)
		return mount_one(&plain, f);
	if ((mkdir("/dev/pts", 0755) < 0 && errno != EEXIST) ||
	    syscall(SYS_move_mount, devpts_fd, "", AT_FDCWD, "/dev/pts", MOVE_MOUNT_F_EMPTY_PATH) <
		    0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount /dev/pts");
	/* The first terminal of that instance is the app's. */
	if (mknod("/dev/console", S_IFREG | 0600, 0) < 0 ||
	    mount("/dev/pts/0", "/dev/console", NULL, MS_BIND, NULL) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot mount /dev/console");
	return 0;
}

/*
 * A device of the agent's own root, on the empty file @path. One that the host lacks is left out.
 */
static int bind_device(int old_root, const char *path)
{
	struct stat st;
	if (fstatat(old_root, path + 1, &st, 0) < 0)
		return errno == ENOENT ? 0 : -1;
	return mknod(path, S_IFREG | 0666, 0) < 0 ? -1 : bind_from(old_root, path);
}

static int make_device(const char *path, dev_t number)
{
	if (mknod(path, S_IFCHR | 0666, number) < 0)
		return -1;
	return mount(path, path, NULL, MS_BIND, NULL);
}

/*
 * An app with CAP_MKNOD can make nodes of every device, disks among them; no file system that it
 * sees opens them. So /dev is "nodev" in the end, and each of our nodes a mount of itself, which it
 * became when /dev was not.
 */
static int make_devices(int old_root, struct fault *f)
{
	struct mount_attr nodev = { .attr_set = MOUNT_ATTR_NODEV };
	mkdir("/dev/net", 0755);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		const char *path = devices[i].path;
		int r = old_root < 0
				? make_device(path, makedev(devices[i].major, devices[i].minor))
				: bind_device(old_root, path);
		if (r < 0)
			return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create %s", path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlink(links[i].target, links[i].path) < 0)
			return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create %s",
					 links[i].path);
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/dev", 0, &nodev, sizeof(nodev)) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot protect /dev");
	return 0;
}

static int protect_failed(const char *path, struct fault *f)
{
	return errno == ENOENT ? 0
			       : fault_sys(f, AGENT_E_INTERNAL, errno, "cannot protect %s", path);
}

/* One file system, mounted on all of them. */
static int hide_dir(const char *path, const char **nothing)
{
	int r = *nothing ? mount(*nothing, path, NULL, MS_BIND, NULL)
			 : mount("tmpfs", path, "tmpfs", HARMLESS | MS_RDONLY,
				 "mode=000,size=4k,nr_inodes=1");
	if (r == 0)
		*nothing = path;
	return r;
}

/* What the kernel does not have needs no protection. */
static int hide_paths(struct fault *f)
{
	int r = 0;
	const char *nothing = NULL;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(hidden_dirs); i++)
		if (hide_dir(hidden_dirs[i], &nothing) < 0)
			r = protect_failed(hidden_dirs[i], f);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(hidden_files); i++)
		if (mount("/dev/null", hidden_files[i], NULL, MS_BIND, NULL) < 0)
			r = protect_failed(hidden_files[i], f);
	return r;
}

static int make_path_read_only(const char *path)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	return (int)syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &read_only, sizeof(read_only));
}

/*
 * File systems have directories of their own in /sys/fs; an app sees its control group and no
 * other.
 */
static int hide_file_systems(bool with_cgroup, struct fault *f)
{
	const char *const options =
		with_cgroup ? "mode=0555,size=4k,nr_inodes=2" : "mode=000,size=4k,nr_inodes=1";
	if (mount("tmpfs", "/sys/fs", "tmpfs", HARMLESS, options) < 0)
		return protect_failed("/sys/fs", f);
	if (with_cgroup && mkdir("/sys/fs/cgroup", 0555) < 0)
		return protect_failed("/sys/fs", f);
	return make_path_read_only("/sys/fs") < 0 ? protect_failed("/sys/fs", f) : 0;
}

static int protect_paths(bool with_cgroup, struct fault *f)
{
	int r = hide_paths(f);
	if (r == 0)
		r = hide_file_systems(with_cgroup, f);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(readonly_paths); i++) {
		const char *path = readonly_paths[i];
		if (mount(path, path, NULL, MS_BIND, NULL) < 0 || make_path_read_only(path) < 0)
			r = protect_failed(path, f);
	}
	if (r == 0 && make_path_read_only("/sys") < 0)
		r = protect_failed("/sys", f);
	return r;
}

/* With ".." it may lead elsewhere. */
static bool is_clean(const char *path)
{
	return !strstr(path, "/../") && !str_ends(path, "/..");
}

bool appfs_has(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (str_is_path_in(path, tops[i]))
			return is_clean(path);
	return false;
}

bool appfs_hides(const struct appfs_plan *plan, const char *path)
{
	return !plan->open_paths && (str_is_one_of(path, hidden_dirs, ARRAY_SIZE(hidden_dirs)) ||
				     str_is_one_of(path, hidden_files, ARRAY_SIZE(hidden_files)));
}

bool appfs_protects(const struct appfs_plan *plan, const char *path)
{
	return appfs_hides(plan, path) ||
	       (!plan->open_paths &&
		str_is_one_of(path, readonly_paths, ARRAY_SIZE(readonly_paths)));
}

int appfs_make_read_only(struct fault *f)
{
	if (make_path_read_only("/") < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot make the root read-only");
	return 0;
}

int appfs_mount(const struct appfs_plan *plan, struct fault *f)
{
	static const struct app_mount cgroup = { "/sys/fs/cgroup", "cgroup2", HARMLESS | MS_RDONLY,
						 NULL, false };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(app_mounts); i++)
		r = mount_one(&app_mounts[i], f);
	if (r == 0)
		r = attach_shm(plan->shm_fd, f);
	if (r == 0)
		r = mount_sysfs(plan->old_root, f);
	if (r == 0)
		r = mount_devpts(plan->devpts_fd, f);
	if (r == 0)
		r = make_devices(plan->old_root, f);
	if (r == 0 && !plan->open_paths)
		r = protect_paths(plan->with_cgroup, f);
	if (r == 0 && plan->with_cgroup)
		r = mount_one(&cgroup, f);
	return r == 0 && plan->old_root >= 0 ? leave_old_root(plan->old_root, f) : r;
}

static int open_dir(int root, const char *path)
{
	return open_in_root(root, path, O_PATH | O_DIRECTORY);
}

/* Links that lead to each other and nowhere, as images have one or two; each takes stack. */
#define DANGLING_MAX 8

/* Where the link @path in the root leads to, as a path from there. 0 or -errno. */
static int read_link(int root, const char *path, char ret[AGENT_PATH_MAX + 1])
{
	char target[AGENT_PATH_MAX + 1];
	cleanup_fd int link = open_in_root(root, path, O_PATH | O_NOFOLLOW);
	ssize_t n = link < 0 ? link : readlinkat(link, "", target, sizeof(target));
	if (n < 0)
		return link < 0 ? link : -errno;
	int above = target[0] == '/' ? 0 : (int)(strrchr(path, '/') + 1 - path);
	int len = snprintf(ret, AGENT_PATH_MAX + 1, "%.*s%.*s", above, path, (int)n, target);
	return len > AGENT_PATH_MAX ? -ENAMETOOLONG : 0;
}

static int make_dirs(int root, const char *path, int left);

/* The directory that the link @path leads to is missing, as in an image that has only the link. */
static int make_linked_dir(int root, const char *path, int left)
{
	char target[AGENT_PATH_MAX + 1];
	int r = left > 0 ? read_link(root, path, target) : -ELOOP;
	return r < 0 ? r : make_dirs(root, target, left - 1);
}

/* Makes what is missing of @path, from the root down. The directory, or -errno. */
static int make_dirs(int root, const char *path, int left)
{
	char partial[AGENT_PATH_MAX + 1];
	int r = str_copy(partial, sizeof(partial), path);
	if (r < 0)
		return r;
	cleanup_fd int dir = open_dir(root, "/");
	for (char *name = partial, *slash = partial; dir >= 0 && slash;) {
		slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		if (*name && mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd_replace(&dir, open_dir(root, *partial ? partial : "/"));
		if (dir == -ENOENT)
			dir = make_linked_dir(root, partial, left);
		if (slash) {
			*slash = '/';
			name = slash + 1;
		}
	}
	return TAKE_FD(dir);
}

int appfs_make_dir(int root, const char *path)
{
	int dir = open_dir(root, path);
	return dir == -ENOENT ? make_dirs(root, path, DANGLING_MAX) : dir;
}

/* Makes what is missing above the file, and it; a link that leads nowhere leads to it then. */
static int make_file(int root, const char *path, int left)
{
	char parent[AGENT_PATH_MAX + 1];
	int r = str_copy(parent, sizeof(parent), path);
	if (r < 0)
		return r;
	*strrchr(parent, '/') = '\0';
	cleanup_fd int dir = parent[0] ? appfs_make_dir(root, parent) : -EBADF;
	if (dir < 0 && dir != -EBADF)
		return dir;
	cleanup_fd int made = open_in_root(root, path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY);
	if (made != -ENOENT)
		return made < 0 ? made : open_in_root(root, path, O_PATH);
	r = left > 0 ? read_link(root, path, parent) : -ELOOP;
	return r < 0 ? r : make_file(root, parent, left - 1);
}

int appfs_make_file(int root, const char *path)
{
	struct stat st;
	cleanup_fd int fd = open_in_root(root, path, O_PATH);
	if (fd == -ENOENT)
		fd_replace(&fd, make_file(root, path, DANGLING_MAX));
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? -EISDIR : TAKE_FD(fd);
}

int appfs_chdir(const char *path, bool make, struct fault *f)
{
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot open the app's root");
	cleanup_fd int dir = make ? appfs_make_dir(root, path) : open_dir(root, path);
	int r = dir < 0 ? dir : fchdir(dir) < 0 ? -errno : 0;
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot change to directory \"%s\"", path)
		     : 0;
}
