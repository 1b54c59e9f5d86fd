/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of squashfs as mounts: read-only, without devices, attached nowhere yet. Where the caller
 * may mount squashfs, the kernel reads it through a loop device, which goes with the mount;
 * elsewhere squashfuse(1) serves it, a process of its own that sees the image and a connection to
 * the kernel.
 */
#ifndef LIB_OS_IMAGE_MOUNT_H
#define LIB_OS_IMAGE_MOUNT_H

#include <sys/types.h>

#include "lib/base/err.h"

/*
 * Mounts the squashfs image @fd, borrowed, through a loop device; with the ids of the user
 * namespace @userns if that is not -EBADF. The mount, which is the caller's, or -errno and @e.
 */
int image_mount_loop(int fd, int userns, struct err *e);

/*
 * The directory @dir, opened in the caller's own namespaces, as another mount, in which files of
 * the ids 0 and up belong to those of the user namespace @userns. The mount, or -errno and @e.
 */
int image_mount_mapped(int dir, int userns, const char *what, struct err *e);

/* The file @path as another mount, through which nobody can write to it. The mount, or -errno. */
int image_mount_file(const char *path);

/* Whether squashfuse can be used by this user. 0, or -errno and @e. */
int image_check_fuse(struct err *e);

/*
 * Makes a FUSE mount for @device, /dev/fuse opened in the user namespace that the process is in.
 * The mount or -errno.
 */
int image_mount_fuse(int device);

/*
 * Starts squashfuse, which serves the image @fd to @device until that is unmounted, and writes its
 * errors to @errors. Dies with the caller. *ret is its process. 0, or -errno and @e.
 */
int image_serve_fuse(int fd, int device, int errors, pid_t *ret, struct err *e);

#endif
