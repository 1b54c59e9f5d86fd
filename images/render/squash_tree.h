/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of squash_tree.c: the listings of directories. */
#ifndef IMAGES_RENDER_SQUASH_TREE_H
#define IMAGES_RENDER_SQUASH_TREE_H

#include <sqfs/meta_writer.h>

#include "images/render/squash_int.h"

/*
 * A directory inode counts its index entries, one for each run of entries, in 16 bits. Each takes
 * 12 bytes and a name; a listing beyond this gets no index, it only speeds up lookups.
 */
#define SQUASH_DIR_INDEX_MAX ((size_t)65535 * 13)

/* What the inode of a directory says about its listing. */
struct squash_listing {
	char *index;       /* room for SQUASH_DIR_INDEX_MAX bytes (borrowed), or NULL: not wanted */
	size_t index_used; /* bytes in @index: struct sqfs_dir_index_t, each with its name */
	size_t index_wanted; /* what a whole index takes */
	size_t n_index;      /* entries in @index */
	uint64_t block;      /* where the listing begins */
	uint32_t offset;
	uint64_t size;
	uint32_t n_subdirs;
};

/*
 * Appends the listing of @dir, whose children are sorted, numbered and written: tree_inode.place is
 * I * SQFS_META_BLOCK_SIZE + OFFSET, where @block_starts[I] is the place of the metadata block in
 * the inode table and OFFSET the inode's place in it. 0 or a code of libsquashfs.
 */
int squash_write_listing(struct squash_listing *l, sqfs_meta_writer_t *m,
			 const uint32_t *block_starts, const struct tree_node *dir);

#endif
