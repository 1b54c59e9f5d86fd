/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an overlay of two trees shows: the kernel's Documentation/filesystems/overlayfs.rst as a
 * function of two trees, without any file system.
 *
 * - A character device 0:0 in the upper tree removes the name.
 * - A directory over a directory takes all attributes of the upper one and merges the contents; if
 *   it has trusted.overlay.opaque="y", nothing of the lower one is left.
 * - Anything else replaces what was there.
 * - What husk's guest does not turn on, but which would change names or contents, is refused:
 *   trusted.overlay.redirect, .metacopy, .whiteout, and opaque="x". Other trusted.overlay.*
 *   attributes only help the kernel and vanish, as do those which layer_next() leaves out of
 *   images, but for POSIX access control lists (system.posix_acl_*), without which group
 *   permissions would mean something else.
 */
#ifndef IMAGES_EXPORT_OVERLAY_H
#define IMAGES_EXPORT_OVERLAY_H

#include "images/render/tree.h"
#include "lib/base/err.h"

/*
 * Which attributes are the overlay's: trusted.overlay.*, or (its option userxattr) user.overlay.*.
 */
enum overlay_marks {
	OVERLAY_TRUSTED,
	OVERLAY_USER,
};

/*
 * Merges @upper into @lower, to which its names and inodes move; it is empty afterwards. 0, or
 * -EOPNOTSUPP, -E2BIG, -ENOMEM with @e; then both trees can only be freed.
 */
int overlay_merge(struct tree *lower, struct tree *upper, enum overlay_marks marks, struct err *e);

#endif
