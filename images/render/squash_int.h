/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the halves of the squashfs writer: contents (squash.c), tree (squash_tree.c). */
#ifndef IMAGES_RENDER_SQUASH_INT_H
#define IMAGES_RENDER_SQUASH_INT_H

#include <sqfs/block.h>
#include <sqfs/compressor.h>
#include <sqfs/error.h>
#include <sqfs/frag_table.h>
#include <sqfs/io.h>
#include <sqfs/super.h>

#include "images/render/squash.h"

#define IMAGE_ALIGNMENT ((size_t)4096) /* block devices have whole pages */

/* libsquashfs' view of the image file. */
struct squash_file {
	sqfs_file_t base;
	int fd; /* borrowed */
	uint64_t size;
	int error;          /* -errno of the first failed read or write */
	struct hasher hash; /* of everything behind the superblock */
	unsigned char super[SQUASH_SUPER_SIZE];
};

/* Room for a block that gets larger; lz4 adds at most size / 255 + 16, zstd less. */
#define SQUASH_PACKED_MAX (SQUASH_BLOCK_SIZE + SQUASH_BLOCK_SIZE / 128)

/*
 * A compressor of libsquashfs with two repairs. Version 1.2 stores a small table as "compressed"
 * even where that takes more bytes than the plain table, which the kernel reads but unsquashfs(1)
 * refuses. And zstd fails where the result does not fit, which cannot be told from other failures.
 */
struct squash_compressor {
	sqfs_compressor_t base;
	sqfs_compressor_t *inner; /* owned by struct squash */
	unsigned char packed[SQUASH_PACKED_MAX];
};

struct squash {
	struct squash_file file;
	const char *where; /* borrowed */
	sqfs_super_t super;
	struct squash_compressor compressor;
	sqfs_frag_table_t *fragments;
	struct tree_content content; /* of the file being written */
	struct tree_run *runs;       /* its blocks */
	size_t alloc_runs;
	uint64_t expected;       /* its size */
	size_t n_block;          /* bytes in @block */
	size_t n_fragment;       /* bytes in @fragment */
	uint32_t fragment_index; /* of @fragment in the table, if n_fragment is not 0 */
	unsigned char block[SQUASH_BLOCK_SIZE];
	unsigned char fragment[SQUASH_BLOCK_SIZE];
	bool compress_contents;
};

/* Translates a failure of libsquashfs, or of a write below it, to -errno with @e. */
int squash_fail(const struct squash *s, int code, struct err *e);

/* Writes inodes, directories, tables and the superblock behind the contents. 0 or -errno, @e. */
int squash_write_tree(struct squash *s, struct tree *t, struct err *e);

#endif
