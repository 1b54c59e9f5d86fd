/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an app finds in its root directory beside its image: /proc, /sys, /dev and a few files.
 * For the process that becomes the app, with the app's root directory as its own.
 */
#ifndef GUEST_AGENT_APP_APPFS_H
#define GUEST_AGENT_APP_APPFS_H

#include <stdbool.h>

#include "guest-agent/fault.h"

/* What apps have different ones of. */
struct appfs_plan {
	int devpts_fd; /* detached mount of the app's terminal, not consumed; negative: a new devpts */
	int shm_fd;    /* detached mount of /dev/shm, not consumed */
	int old_root;     /* as appfs_enter() left it */
	bool with_cgroup; /* the process is in a control group of the app's own, which the app sees */
	bool open_paths; /* nothing of /proc and /sys is hidden or read-only */
};

/*
 * A mount namespace of the calling process's own. With @with_cgroup the control group that it is in
 * becomes the root of those that it sees. 0 or FAULT_SET.
 */
int appfs_unshare(bool with_cgroup, struct fault *f);

/*
 * Makes the directory @root, a mount, the root of the calling process in the mount namespace that
 * it has for itself. The old root is gone, unless *old_root is wanted (not NULL): then it is open
 * there, the caller's, goes with appfs_mount(), and until then is where ".." of the root leads. A
 * process in a user namespace needs it: there /proc and /sys can be mounted only where they are
 * mounted already (mount_too_revealing() of the kernel), and devices not be made. 0 or FAULT_SET.
 */
int appfs_enter(const char *root, int *old_root, struct fault *f);

/*
 * The same for a root directory that others can change meanwhile, as one of the host. What is
 * protected must be where it is looked for, so the root is a file system of the process's own at
 * first, on the directory @empty, which is made: in there appfs_mount() works, and appfs_settle()
 * takes what it has mounted to @root, which becomes the root. 0 or FAULT_SET.
 */
int appfs_enter_beside(const char *root, const char *empty, int *old_root, struct fault *f);

/*
 * Ends what appfs_enter_beside() began. What is missing in the root is made; anything else than a
 * directory there is an error. 0 or FAULT_SET.
 */
int appfs_settle(struct fault *f);

/*
 * Mounts /proc, /sys and /dev. Where the root has something else than directories there, that is an
 * error, and so is whatever cannot be protected although it is there. 0 or FAULT_SET.
 */
int appfs_mount(const struct appfs_plan *plan, struct fault *f);

/* Whether @path is in what appfs_mount() mounts. */
bool appfs_has(const char *path);

/* Whether appfs_mount() hides @path; and whether it hides it or makes it read-only. */
bool appfs_hides(const struct appfs_plan *plan, const char *path);
bool appfs_protects(const struct appfs_plan *plan, const char *path);

/* Makes the root directory read-only, but not what is mounted below it. 0 or FAULT_SET. */
int appfs_make_read_only(struct fault *f);

/*
 * Opens the directory @path of the root directory @root (O_PATH), which it does not leave whatever
 * links are on the way; creates what is missing. The caller's descriptor, or -errno: -ENOTDIR if
 * something else is there.
 */
int appfs_make_dir(int root, const char *path);

/*
 * The same for what is no directory: a file that is missing is made, empty. The caller's O_PATH
 * descriptor, or -errno: -EISDIR.
 */
int appfs_make_file(int root, const char *path);

/*
 * Changes to @path in the root directory, which it does not leave whatever links are on the way; if
 * it is missing it is made, or else that is an error. 0 or FAULT_SET.
 */
int appfs_chdir(const char *path, bool make, struct fault *f);

#endif
