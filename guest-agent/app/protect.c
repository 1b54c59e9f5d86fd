/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths lead through what others have made: links of the image, volumes that change meanwhile.
 * So each is looked up once, and all that is done with it is done with what was found. What covers
 * it comes from descriptors, too: by then /dev or the root may be covered themselves.
 *
 * A read-only path is a mount of its own with all that is mounted in it, of which the topmost alone
 * is made read-only: nothing comes to light that had been covered. Masks come last.
 */
#include "guest-agent/app/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define NOTHING_OPTIONS 3

static int protect_error(const char *path, struct fault *f)
{
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot protect %s", path);
}

/* What is at @path, not opened: *ret is -EBADF if nothing is. */
static int find(const char *path, int *ret, struct fault *f)
{
	struct stat root, st;
	int fd = open(path, O_PATH | O_CLOEXEC);
	*ret = -EBADF;
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : protect_error(path, f);
	*ret = fd;
	if (stat("/", &root) < 0 || fstat(fd, &st) < 0)
		return protect_error(path, f);
	return root.st_dev == st.st_dev && root.st_ino == st.st_ino
		       ? fault_set(f, AGENT_E_INTERNAL,
				   "cannot protect %s: it is the root directory", path)
		       : 0;
}

/* A mount of what is open as @fd, attached nowhere, or -1 and errno. */
static int clone_mount(int fd, unsigned flags)
{
	return (int)syscall(SYS_open_tree, fd, "",
			    flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

static int attach(int mount, int target)
{
	return (int)syscall(SYS_move_mount, mount, "", target, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static int make_read_only(const char *path, struct fault *f)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	cleanup_fd int target = -EBADF;
	int r = find(path, &target, f);
	if (r != 0 || target < 0)
		return r;
	cleanup_fd int mount = clone_mount(target, AT_RECURSIVE);
	if (mount < 0 ||
	    syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) <
		    0 ||
	    attach(mount, target) < 0)
		return protect_error(path, f);
	return 0;
}

/* An empty directory that nobody may look into, attached nowhere; or -1 and errno. */
static int make_nothing(void)
{
	static const char *const options[NOTHING_OPTIONS][2] = {
		{ "mode", "000" },
		{ "size", "4k" },
		{ "nr_inodes", "1" },
	};
	cleanup_fd int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	int r = fs < 0 ? -1 : 0;
	for (size_t i = 0; r == 0 && i < NOTHING_OPTIONS; i++)
		r = (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options[i][0],
				 options[i][1], 0);
	if (r == 0)
		r = (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	return r < 0 ? -1
		     : (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
				    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					    MOUNT_ATTR_NOEXEC);
}

/* Covers a directory; @nothing is the mount that covers the first one, -EBADF before. */
static int cover_dir(int target, int *nothing)
{
	bool first = *nothing < 0;
	if (first)
		*nothing = make_nothing();
	if (*nothing < 0)
		return -1;
	if (first)
		return attach(*nothing, target);
	cleanup_fd int copy = clone_mount(*nothing, 0); /* can be, as it is attached */
	return copy < 0 ? -1 : attach(copy, target);
}

static int cover_file(int target, int null)
{
	cleanup_fd int copy = clone_mount(null, 0);
	return copy < 0 ? -1 : attach(copy, target);
}

static int mask(const char *path, int null, int *nothing, struct fault *f)
{
	struct stat st;
	cleanup_fd int target = -EBADF;
	int r = find(path, &target, f);
	if (r != 0 || target < 0)
		return r;
	r = fstat(target, &st);
	if (r == 0)
		r = S_ISDIR(st.st_mode) ? cover_dir(target, nothing) : cover_file(target, null);
	return r < 0 ? protect_error(path, f) : 0;
}

static bool is_one(const char *path, enum protect_which which)
{
	return which == PROTECT_ALL || appfs_has(path) == (which == PROTECT_APPFS);
}

int protect_paths(const struct appfs_plan *plan, enum protect_which which, int null,
		  const struct strv *read_only, const struct strv *masked, struct fault *f)
{
	int r = 0;
	cleanup_fd int nothing = -EBADF;
	for (size_t i = 0; r == 0 && i < read_only->n; i++)
		if (is_one(read_only->v[i], which) && !appfs_protects(plan, read_only->v[i]))
			r = make_read_only(read_only->v[i], f);
	for (size_t i = 0; r == 0 && i < masked->n; i++)
		if (is_one(masked->v[i], which) && !appfs_hides(plan, masked->v[i]))
			r = mask(masked->v[i], null, &nothing, f);
	return r;
}
