/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes of a pod, in the roots of its apps. Where they are is said in rootfs.h. Whichever app
 * comes first makes a volume; the apps' processes that do it take turns. A volume is mounted in the
 * mount namespace of the app's process, with which it goes.
 */
#ifndef GUEST_AGENT_APP_VOLUMES_H
#define GUEST_AGENT_APP_VOLUMES_H

#include "guest-agent/app/rootfs.h"
#include "lib/wire/agent.h"

/* Detached mounts, in the order of the message; -EBADF: none. */
struct volume_fds {
	int fds[AGENT_MOUNTS_MAX];
	size_t n;
};

#define VOLUME_FDS_INIT ((struct volume_fds){ .n = 0 })

/*
 * Makes what is missing of the volumes of @app, whose root is mounted, and opens them, but for one
 * that is the root. For a process in the agent's mount namespace. *ret is the caller's
 * (volumes_close()), on failure, too. 0 or FAULT_SET.
 */
int volumes_open(const struct rootfs_config *c, const char *app, const struct agent_mounts *m,
		 struct volume_fds *ret, struct fault *f);

/*
 * Mounts volume @m of @app as its root directory, where rootfs_make_app() has made a place for it.
 * One that is to be @read_only is so from now on, with all that the host has mounted below, also
 * what the kernel mounts only when somebody looks at it: nothing can be made in there. For a
 * process in the agent's mount namespace. 0 or FAULT_SET.
 */
int volumes_mount_root(const struct rootfs_config *c, const char *app, const struct agent_mount *m,
		       bool read_only, struct fault *f);

/*
 * Mounts them in the directory @root, which is to become the root of the calling process in its own
 * mount namespace, and makes what is missing of the paths; or (@in_dev) those of /dev in @root,
 * which is that, when it has been made. Links lead nowhere but in there. Nothing may be mounted on
 * @root: with a root on top of another, ".." of the lower one is the upper. 0 or FAULT_SET.
 */
int volumes_attach(const struct volume_fds *v, const struct agent_mounts *m, bool in_dev,
		   const char *root, struct fault *f);

/*
 * Lets go of volumes that apps brought from the host and that the host has taken away, and of those
 * of @app by name; otherwise their file systems would be in use until memory is short. What the
 * host still has stays mounted. Without a VM there is nothing to do.
 */
void volumes_look_anew(const struct rootfs_config *c, const char *app);

/* Closes what is open, after which there is none. */
void volumes_close(struct volume_fds *v);

/*
 * Writes the disks of volumes out and makes them read-only, after which their file systems are as
 * clean as unmounted ones. For a pod whose apps have ended. Blocks.
 */
void volumes_seal(const struct rootfs_config *c);

#endif
