/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of images/export share: ext4 disks, and trees as text. */
#ifndef TESTS_UNIT_IMAGES_EXPORT_SUPPORT_H
#define TESTS_UNIT_IMAGES_EXPORT_SUPPORT_H

#include "images/render/tree.h"
#include "lib/base/buf.h"

/* Makes a scratch disk as stage1 does. */
#define DISK_STAGE1 \
	"^has_journal,^metadata_csum,^resize_inode,sparse_super2,uninit_bg,extents,64bit"

/*
 * An ext4 disk of 4 MiB, made by mkfs.ext4(8) with @features and filled by debugfs(8) with
 * @commands, a line each, below the test's directory @path, where "data" may be a file that they
 * write. The descriptor is read-write and the caller's. Skips the test if the programs are missing.
 */
int disk_make(const char *path, const char *features, const char *commands);

/*
 * One line for each name in order, the root as ".": type letter, mode, owner, mtime, path, then
 * size, target or device, then attributes. Owned by the caller.
 */
char *tree_text(const struct tree *t);

/* Adds what @path names below existing directories; the caller may change the inode. */
struct tree_inode *tree_put(struct tree *t, const char *path, uint32_t mode);

/* Adds an attribute. */
void tree_put_xattr(struct tree *t, struct tree_inode *inode, const char *name, const char *value);

#endif
