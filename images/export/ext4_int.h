/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the ext4 reader: disk (ext4.c), tree (ext4_tree.c), contents
 * (ext4_data.c).
 */
#ifndef IMAGES_EXPORT_EXT4_INT_H
#define IMAGES_EXPORT_EXT4_INT_H

#include <ext2fs/ext2fs.h>

#include "images/export/ext4.h"
#include "lib/base/macros.h"

struct ext4 {
	ext2_filsys fs;
	int fd;              /* borrowed */
	uint64_t size;       /* of the file */
	uint64_t reads;      /* blocks that libext2fs has read */
	uint64_t bytes_left; /* for contents of files */
	int error;           /* -errno of the first failed read */
};

/* Reads exactly @len bytes at @offset of the disk. 0, -ENODATA beyond its end, or -errno. */
int ext4_read_at(struct ext4 *d, uint64_t offset, void *mem, size_t len);

/*
 * Translates a failure of libext2fs on the inode @ino (0: on the disk as a whole), or of a read
 * below it, to -errno with @e.
 */
int ext4_fail(const struct ext4 *d, errcode_t code, uint32_t ino, struct err *e);

/* The message for what does not fit together; @what says it. -EBADMSG with @e. */
int ext4_damaged(struct err *e, const char *what, uint32_t ino);

/*
 * The pieces of the file with this inode, up to its size. 0 or -errno with @e.
 */
int ext4_map(struct ext4 *d, ext2_ino_t ino, struct ext2_inode *inode, struct content_map *ret,
	     struct err *e);

/* Bytes in a block. */
static inline uint64_t ext4_block_size(const struct ext4 *d)
{
	return d->fs->blocksize;
}

#endif
