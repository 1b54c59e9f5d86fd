/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/pod/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/wire/agent.h"
#include "stage1-ns/message.h"

#define HARMLESS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* What the agent gives to apps, and what it opens itself; the host may lack some of them. */
static const char *const devices[] = { "null",    "zero", "full",    "random",
				       "urandom", "tty",  "net/tun", "ptmx" };
static const char *const dirs[] = {
	"dev", "dev/net", "proc", "sys", "disks", "host", ("host/" AGENT_HOST_APPS), "cgroup"
};

/* The mount of what @path names, from @dir. Or -errno. */
static int clone_mount(int dir, const char *path, unsigned flags)
{
	int fd = open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static int attach(int mount, int root, const char *path)
{
	return move_mount(mount, "", root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

/*
 * The only place that is sure to be there. It may be closed to root of a user namespace, but not as
 * long as no path is looked up.
 */
static int cover_working_directory(int root)
{
	const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	return move_mount(root, "", AT_FDCWD, "", flags) < 0 ? -errno : 0;
}

/* Read-only, which keeps nobody from writing to a device, but from changing its mode and owner. */
static int bind_device(int root, const char *name)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	char path[64];
	snprintf(path, sizeof(path), "/dev/%s", name);
	cleanup_fd int mount = clone_mount(AT_FDCWD, path, 0);
	if (mount < 0)
		return mount == -ENOENT ? 0 : mount;
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (mknodat(root, path + 1, S_IFREG | 0666, 0) < 0)
		return -errno;
	return attach(mount, root, path + 1);
}

static int bind_devices(int root)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices); i++)
		r = bind_device(root, devices[i]);
	return r;
}

static int make_dirs(int root)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(root, dirs[i], 0755) < 0)
			return -errno;
	return 0;
}

static int add_scratch(int root, int mount)
{
	char path[64];
	if (mount < 0)
		return 0;
	snprintf(path, sizeof(path), NS_DISK_DIR "/%d", AGENT_SCRATCH_LUN);
	if (mkdirat(root, path + 1, 0755) < 0)
		return -errno;
	return attach(mount, root, path + 1);
}

int root_add_volumes(int root, const struct host_volume *volumes, const int *mounts, size_t n)
{
	cleanup_fd int dir = openat(root, &NS_VOLUME_DIR[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = host_volume_make_place(mounts[i], dir, volumes[i].name);
		if (r == 0)
			r = host_volume_attach(mounts[i], dir, volumes[i].name);
	}
	return r;
}

static int bind_cgroup(int root, int group, const char *path)
{
	cleanup_fd int mount = clone_mount(group, "", AT_EMPTY_PATH);
	if (mount < 0)
		return mount;
	if (mkdirat(root, path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return attach(mount, root, path);
}

/* What limits and counts: the tree of version 2, or some hierarchies of version 1. */
static int add_cgroups(int root, const struct pod_cgroup *g, bool *ret)
{
	char path[64];
	int r = 0;
	if (!pod_cgroup_is_v1(g)) {
		*ret = g->fds[CGROUP_UNIFIED] >= 0;
		return *ret ? bind_cgroup(root, g->fds[CGROUP_UNIFIED], &ROOT_CGROUP_DIR[1]) : 0;
	}
	for (enum cgroup_kind kind = CGROUP_MEMORY; r == 0 && kind < CGROUP_DEVICES; kind++) {
		if (g->fds[kind] < 0)
			continue;
		snprintf(path, sizeof(path), ROOT_CGROUP_DIR "/%s", cgroup_kind_name(kind));
		r = bind_cgroup(root, g->fds[kind], path + 1);
		*ret = true;
	}
	return r;
}

int root_mount_sysfs(void)
{
	const unsigned harmless = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	cleanup_fd int context = fsopen("sysfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(context, FSMOUNT_CLOEXEC, harmless);
	return fd < 0 ? -errno : fd;
}

/* A tmpfs with directories, attached nowhere yet. */
static int make_root(void)
{
	cleanup_fd int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(context, FSCONFIG_SET_STRING, "size", "1m", 0) < 0 ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	cleanup_fd int root = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	if (root < 0)
		return -errno;
	int r = make_dirs(root);
	return r < 0 ? r : TAKE_FD(root);
}

/* On a host that may not write there, nor may the pod. */
static int mount_own_sysfs(void)
{
	if (mount("sysfs", "sys", "sysfs", HARMLESS, NULL) == 0 ||
	    mount("sysfs", "sys", "sysfs", HARMLESS | MS_RDONLY, NULL) == 0)
		return 0;
	return -errno;
}

/*
 * The old root is needed to the end: without its /proc and /sys, new ones are refused to a user
 * namespace.
 */
static int change_root(int root, int sysfs)
{
	if (fchdir(root) < 0)
		return -errno;
	if (mount("proc", "proc", "proc", HARMLESS, NULL) < 0)
		return errno == EPERM ? -EACCES : -errno;
	int r = sysfs >= 0 ? attach(sysfs, root, "sys") : mount_own_sysfs();
	if (r < 0)
		return r;
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

/*
 * In a chroot(2) the mounts around it stay around the pod, for whoever may call that again. Joining
 * our own namespace leads to its root directory, which is ours, or tells.
 */
static int check_root(void)
{
	struct stat before, after;
	cleanup_fd int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (own < 0 || stat("/", &before) < 0 || setns(own, CLONE_NEWNS) < 0 ||
	    stat("/", &after) < 0)
		return -errno;
	return before.st_dev == after.st_dev && before.st_ino == after.st_ino ? 0 : -EXDEV;
}

int root_enter(const struct root_input *in, bool *ret_cgroups, struct err *e)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup groups = POD_CGROUP_INIT;
	umask(022);
	*ret_cgroups = false;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, -errno, "namespaces: mounts");
	int r = pod_cgroup_reopen(in->groups, &groups, e);
	if (r < 0)
		return r;
	cleanup_fd int own = in->scratch && in->scratch_mount < 0
				     ? clone_mount(AT_FDCWD, in->scratch, 0)
				     : -EBADF;
	if (own < 0 && own != -EBADF)
		return err_sys(e, own, "pod directory: \"%s\"", in->scratch);
	cleanup_fd int root = make_root();
	if (root < 0)
		return err_sys(e, root, "namespaces: cannot make a root directory");
	r = cover_working_directory(root);
	if (r == 0)
		r = bind_devices(root);
	if (r == 0)
		r = add_scratch(root, own < 0 ? in->scratch_mount : own);
	if (r == 0)
		r = root_add_volumes(root, in->volumes, in->volume_mounts, in->n_volumes);
	if (r == 0)
		r = add_cgroups(root, &groups, ret_cgroups);
	if (r == 0)
		r = change_root(root, in->sysfs);
	if (r == 0)
		r = check_root();
	if (r == -EACCES)
		return err_set(
			e, r,
			"namespaces: root of a user namespace may not mount /proc where some "
			"of the host's is hidden or read-only, as in containers (give "
			"--userns=host)");
	if (r == -EXDEV)
		return err_set(e, r,
			       "namespaces: husk is in a chroot(2), and so would pods be (use "
			       "pivot_root(2))");
	return r < 0 ? err_sys(e, r, "namespaces: cannot set up the root directory") : 0;
}
