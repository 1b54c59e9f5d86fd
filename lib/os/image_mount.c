/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/image_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"

#define LOOP_TRIES 1000 /* others take free loop devices, too, at most as many as there can be */
#define FUSE_FD    4
#define IMAGE_FD   3
#define TOOLS_PATH "/usr/bin:/bin:/usr/local/bin"
#define SQUASHFUSE "squashfuse_ll"

/* libfuse takes a connection to the kernel by this name, /dev/fd/N, instead of mounting. */
static const char *const fuse_words[] = { SQUASHFUSE, "-f", "/proc/self/fd/3", "/dev/fd/4" };

/* Makes the free loop device @number show @image, if it is still free. The device, or -errno. */
static int take_loop(int number, int image, char path[32])
{
	struct loop_config config = {
		.fd = (unsigned)image,
		.info = { .lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR },
	};
	snprintf(path, 32, "/dev/loop%d", number);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* A loop device that shows @image and is free again when its last user has gone. Or -errno. */
static int make_loop(int image, char path[32], struct err *e)
{
	cleanup_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return err_sys(e, -errno, "image: /dev/loop-control");
	int r = -EBUSY;
	for (int i = 0; r == -EBUSY && i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			return err_sys(e, -errno, "image: no free loop device");
		r = take_loop(number, image, path);
	}
	return r < 0 ? err_sys(e, r, "image: cannot use \"%s\"", path) : r;
}

/* The file system that @context describes, read-only; -errno if it cannot be mounted. */
static int make_mount(int context)
{
	if (fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
	return fd < 0 ? -errno : fd;
}

static int map_ids(int mount, int userns, const char *what, const char *instead, struct err *e)
{
	/*
	 * A clone of a mount that is shared would be, too: whoever mounts in there, would on the
	 * host.
	 */
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
				   .propagation = MS_PRIVATE,
				   .userns_fd = (unsigned)userns };
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	return err_set(e, -errno,
		       "%s: its file system cannot show other ids, as a user namespace needs it "
		       "(%s, or give --userns=host)",
		       what, instead);
}

int image_mount_mapped(int dir, int userns, const char *what, struct err *e)
{
	cleanup_fd int mount =
		open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (mount < 0)
		return err_sys(e, -errno, "%s", what);
	int r = map_ids(mount, userns, what, "use another one", e);
	return r < 0 ? r : TAKE_FD(mount);
}

int image_mount_file(const char *path)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV };
	cleanup_fd int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int image_mount_loop(int fd, int userns, struct err *e)
{
	char path[32];
	cleanup_fd int loop = make_loop(fd, path, e);
	if (loop < 0)
		return loop;
	cleanup_fd int context = fsopen("squashfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "source", path, 0) < 0)
		return err_sys(e, -errno, "image: squashfs");
	cleanup_fd int mount = make_mount(context);
	if (mount < 0)
		return err_sys(e, mount, "image: cannot mount it as squashfs");
	int r = userns >= 0 ? map_ids(mount, userns, "image", "install squashfuse", e) : 0;
	return r < 0 ? r : TAKE_FD(mount);
}

/* ---- FUSE ---- */

int image_check_fuse(struct err *e)
{
	char program[PATH_MAX];
	if (path_find_program(SQUASHFUSE, TOOLS_PATH, program, sizeof(program)) < 0)
		return err_set(e, -ENOENT,
			       "image: " SQUASHFUSE " not found, which pods of others than root "
			       "need (install the package squashfuse)");
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return err_sys(e, -errno, "image: /dev/fuse (load the module fuse, or chmod 666)");
	return 0;
}

int image_mount_fuse(int device)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", device);
	const struct {
		const char *key, *value;
	} options[] = {
		{ "source", "husk" },    { "fd", number },
		{ "rootmode", "40000" }, /* a directory */
		{ "user_id", "0" },      { "group_id", "0" },
	};
	cleanup_fd int context = fsopen("fuse", FSOPEN_CLOEXEC);
	if (context < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (fsconfig(context, FSCONFIG_SET_STRING, options[i].key, options[i].value, 0) < 0)
			return -errno;
	if (fsconfig(context, FSCONFIG_SET_FLAG, "allow_other", NULL, 0) < 0 ||
	    fsconfig(context, FSCONFIG_SET_FLAG, "default_permissions", NULL, 0) < 0)
		return -errno;
	return make_mount(context);
}

int image_serve_fuse(int fd, int device, int errors, pid_t *ret, struct err *e)
{
	char program[PATH_MAX];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, ARRAY_SIZE(fuse_words));
	int r = path_find_program(SQUASHFUSE, TOOLS_PATH, program, sizeof(program));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fuse_words); i++)
		r = strv_add(&argv, fuse_words[i]);
	struct spawn_plan plan = {
		.program = program, .argv = argv.v, .die_with_parent = true, .no_new_privs = true
	};
	if (r == 0)
		r = spawn_plan_fd(&plan, fd, IMAGE_FD);
	if (r == 0)
		r = spawn_plan_fd(&plan, device, FUSE_FD);
	if (r == 0)
		r = spawn_plan_fd(&plan, errors, STDERR_FILENO);
	if (r == 0)
		r = spawn(&plan, ret, NULL);
	return r < 0 ? err_sys(e, r, "image: cannot start " SQUASHFUSE) : 0;
}
