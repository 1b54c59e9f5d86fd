/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upper layer as a directory of the host, the upper one of an overlay, which an app has filled.
 *
 * Everything in it is hostile but nothing changes any more: the pod has ended. Only directories and
 * regular files are opened, by one name in a directory that is open, no links are followed, and no
 * other file system is entered. Runs inside of the confined child only, with nothing but
 * CAP_DAC_READ_SEARCH (images/render/confine.h).
 */
#ifndef IMAGES_EXPORT_UPPER_H
#define IMAGES_EXPORT_UPPER_H

#include <stdint.h>

#include "images/export/content.h"
#include "images/render/tree.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define UPPER_FILE_MAX ((uint64_t)1 << 44) /* bytes of one file, holes among them, as of ext4's */

struct upper;

/* @dir, borrowed, may be opened with O_PATH. 0 or -errno with @e. */
int upper_open(int dir, struct upper **ret, struct err *e);

/* Accepts NULL. */
void upper_free(struct upper *u);
DEFINE_FREEP(upper);

/*
 * The tree of all that is in the directory, once. Regular files have u.content.size, all attributes
 * are there, also those of overlayfs; the place of a file is for upper_reader(). Changes the
 * working directory. 0 or -errno with @e: -E2BIG beyond the limits of a tree
 * (images/render/tree.h), or of attributes (images/render/layer.h).
 */
int upper_tree(struct upper *u, struct tree **ret, struct err *e);

/*
 * Reads contents of inodes of that tree; valid as long as @u. All files together have no more bytes
 * beside their holes than the file system they are on.
 */
struct content_reader upper_reader(struct upper *u);

#endif
