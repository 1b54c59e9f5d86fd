/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an app finds in its root directory beside its image: /proc, /sys, /dev and a few files.
 * For the process that becomes the app, with the app's root directory as its own.
 */
#ifndef GUEST_AGENT_APPFS_H
#define GUEST_AGENT_APPFS_H

#include "guest-agent/fault.h"

/*
 * Makes the directory @root the root of the calling process in a new mount namespace; the old root
 * is gone there. 0 or FAULT_SET.
 */
int appfs_enter(const char *root, struct fault *f);

/*
 * Mounts /proc, /sys and /dev, the latter with @devpts_fd (a detached mount, not consumed) or, if
 * that is negative, a new devpts. Where the root has something else than directories there, that is an error.
 */
int appfs_mount(int devpts_fd, struct fault *f);

/* Makes the root directory read-only, but not what is mounted below it. 0 or FAULT_SET. */
int appfs_make_read_only(struct fault *f);

/*
 * Changes to @path in the root directory, which it does not leave whatever links are on the way; creates
 * it if it is missing. 0 or FAULT_SET.
 */
int appfs_chdir(const char *path, struct fault *f);

#endif
