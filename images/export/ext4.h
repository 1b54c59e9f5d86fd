/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upper layer: the scratch disk, an ext4 file system that a guest wrote, read through
 * libext2fs.
 *
 * Everything on the disk is hostile. Nothing is written, no journal is looked at (the disk has
 * none), and bitmaps and counters, which a killed virtual machine leaves wrong, are not needed.
 * Whatever does not fit together is an error, not a guess, with one exception, see ext4_tree().
 * Runs inside of the confined child only.
 */
#ifndef IMAGES_EXPORT_EXT4_H
#define IMAGES_EXPORT_EXT4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/export/content.h"
#include "images/render/tree.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define EXT4_INODES_MAX ((uint32_t)1 << 25) /* one for each 16 KiB of a disk of 512 GiB */

/*
 * Blocks that libext2fs may read, so that a disk that leads in circles comes to an end: for each of
 * TREE_NODES_MAX files its inode, its attributes, a block of extents, a block of its directory, and
 * as much again.
 */
#define EXT4_READS_MAX ((uint64_t)8 * TREE_NODES_MAX)

struct ext4;

/*
 * Opens the file system on the read-only descriptor @fd, which is borrowed, and checks that it is
 * what stage1 made: features, geometry, that it fits into the file. 0 or -errno with @e.
 */
int ext4_open(int fd, struct ext4 **ret, struct err *e);

/* Accepts NULL. */
void ext4_free(struct ext4 *d);
DEFINE_FREEP(ext4);

/* True if the guest completed it: unmounted, or made read-only. */
bool ext4_is_clean(const struct ext4 *d);

/* What an app has changed. */
struct ext4_changes {
	struct tree *tree; /* owned by who asked */
	size_t lost;       /* names that were left out */
};

/*
 * The tree below the directory @app/upper. Regular files have u.content.size, all attributes are
 * there, also those of overlayfs. On a disk that was not completed, a name whose inode was never
 * written is left out and counted; on a clean one it is an error, as all else that is inconsistent
 * is on both. 0 or -errno with @e (-ENOENT: no such directory).
 */
int ext4_tree(struct ext4 *d, const char *app, struct ext4_changes *ret, struct err *e);

/*
 * Reads contents of inodes of that tree; valid as long as @d. All files together have no more bytes
 * than the disk.
 */
struct content_reader ext4_reader(struct ext4 *d);

#endif
