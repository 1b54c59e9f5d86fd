/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/backend/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/image_mount.h"
#include "lib/os/rmtree.h"
#include "lib/os/userns.h"

#define TRIAL_DIR ".husk-doctor-XXXXXX"

/* Makes an overlay of the directories of the trial, which is attached nowhere. */
static int mount_overlay(const char *dir, bool in_userns)
{
	static const char *const keys[] = { "lowerdir", "upperdir", "workdir" };
	cleanup_fd int context = fsopen("overlay", FSOPEN_CLOEXEC);
	if (context < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/%s", dir, keys[i]);
		if (mkdir(path, 0700) < 0 ||
		    fsconfig(context, FSCONFIG_SET_STRING, keys[i], path, 0) < 0)
			return -errno;
	}
	/* Who is root in a user namespace only may not write other attributes. */
	if (in_userns && fsconfig(context, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
		return -errno;
	return fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int try_overlay(void *ctx)
{
	char dir[] = TRIAL_DIR;
	const bool *in_userns = ctx;
	if (*in_userns && unshare(CLONE_NEWNS) < 0)
		return -errno;
	if (!mkdtemp(dir))
		return -errno;
	int r = mount_overlay(dir, *in_userns);
	rmtree(AT_FDCWD, dir);
	return r;
}

static int check_overlay(bool is_root, struct err *e)
{
	bool in_userns = !is_root;
	struct err ignored = ERR_INIT;
	int r = is_root ? try_overlay(&in_userns) : userns_call(try_overlay, &in_userns, &ignored);
	return r < 0 ? err_sys(e, r,
			       "data directory: its file system cannot be the upper one of an "
			       "overlay, which keeps what apps change")
		     : 0;
}

static int check_ids(struct err *e)
{
	cleanup_fd int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, -errno, "data directory");
	cleanup_fd int userns = userns_make(e);
	if (userns < 0)
		return userns;
	cleanup_fd int mount = image_mount_mapped(dir, userns, "data directory", e);
	return mount < 0 ? mount : 0;
}

int data_dir_check(struct err *e)
{
	bool is_root = geteuid() == 0;
	int r = check_overlay(is_root, e);
	return r == 0 && is_root ? check_ids(e) : r;
}
