/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower layer: a rendered image, read through libsquashfs.
 *
 * husk wrote the file itself, but of a hostile image's content, so all of it is checked like
 * anybody's. Runs inside of the confined child only.
 */
#ifndef IMAGES_EXPORT_IMAGE_H
#define IMAGES_EXPORT_IMAGE_H

#include "images/export/content.h"
#include "images/render/tree.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct image_fs;

/* Opens the squashfs on the read-only descriptor @fd, which is borrowed. 0 or -errno with @e. */
int image_fs_open(int fd, struct image_fs **ret, struct err *e);

/* Accepts NULL. */
void image_fs_free(struct image_fs *s);
DEFINE_FREEP(image_fs);

/*
 * The tree of the whole image, which the caller frees; regular files have u.content.size. A
 * character device 0:0 is a whiteout to overlayfs in this layer, too, so it is left out. 0 or
 * -errno with @e.
 */
int image_fs_tree(struct image_fs *s, struct tree **ret, struct err *e);

/* Reads contents of inodes of that tree; valid as long as @s. */
struct content_reader image_fs_reader(struct image_fs *s);

#endif
