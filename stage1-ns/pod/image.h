/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendered images as mounts: read-only, without devices, attached nowhere yet. Where the caller may
 * mount squashfs, the kernel reads it through a loop device, which goes with the mount; elsewhere
 * squashfuse(1) serves it, a process of its own that sees the image and a connection to the kernel.
 */
#ifndef STAGE1_NS_POD_IMAGE_H
#define STAGE1_NS_POD_IMAGE_H

#include "lib/base/err.h"

/*
 * Mounts the squashfs image @fd, borrowed, through a loop device; with the ids of the user
 * namespace @userns if that is not -EBADF. The mount, which is the caller's, or -errno and @e.
 */
int image_mount_loop(int fd, int userns, struct err *e);

/*
 * Makes the mount @mount (of a directory that the caller opened in its own namespaces) one whose
 * ids are those of the user namespace @userns. 0, or -errno and @e.
 */
int image_map_ids(int mount, int userns, const char *what, struct err *e);

/* Whether squashfuse can be used by this user. 0, or -errno and @e. */
int image_check_fuse(struct err *e);

/*
 * Makes a FUSE mount for @device, /dev/fuse opened in the user namespace that the process is in.
 * The mount or -errno.
 */
int image_mount_fuse(int device);

/*
 * Starts squashfuse, which serves the image @fd to @device until that is unmounted. Dies with the
 * caller. 0, or -errno and @e.
 */
int image_serve_fuse(int fd, int device, struct err *e);

#endif
