/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a file tree as a squashfs 4.0 image, reproducibly: the same tree and contents give the
 * same bytes.
 *
 * Contents come first, in the order in which the caller has them; squash_finish() then writes the
 * tree. Contents are in blocks of 128 KiB, plain or compressed one by one; the ends of files share
 * fragment blocks, blocks of zeros are holes. libsquashfs does the metadata; the data path is here,
 * because this way it is serial (no threads to allow in the sandbox), needs three blocks of memory,
 * and keeps the errno of a failed write.
 */
#ifndef IMAGES_RENDER_SQUASH_H
#define IMAGES_RENDER_SQUASH_H

#include <stddef.h>
#include <stdint.h>

#include "images/render/tree.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

/*
 * Changes whenever the same layers would give other bytes or another meaning; part of the name of a
 * rendered file.
 */
#define RENDER_VERSION 3

#define SQUASH_BLOCK_SIZE ((size_t)128 * 1024)
#define SQUASH_SUPER_SIZE ((size_t)96)        /* the superblock, at the beginning of the file */
#define SQUASH_BLOCKS_MAX ((uint64_t)1 << 26) /* of one file: 8 TiB, holes included */

/*
 * Changes between data and holes in one file; with compression a run is a block. 4 MiB of memory.
 */
#define SQUASH_RUNS_MAX ((size_t)1 << 19)

/*
 * Blocks that hold the ends of files, on average at least half full: 64 GiB, all that an image may
 * have, in files of 64 KiB. 16 MiB of memory, for which there may be none beside a large tree.
 */
#define SQUASH_FRAGMENTS_MAX ((size_t)1 << 20)

/* How contents are stored. Tables are always compressed; plain images have them with lz4. */
enum render_compression {
	RENDER_PLAIN,
	RENDER_LZ4,
	RENDER_ZSTD,
};

#define RENDER_ZSTD_LEVEL     3  /* the default of zstd(1) */
#define RENDER_ZSTD_LEVEL_MAX 19 /* beyond, a block of 128 KiB does not get smaller */

struct squash;

/*
 * Starts an image in the empty file @fd (borrowed, read-write). @where (borrowed) is the directory
 * to name when its file system is full. @level is 1 to RENDER_ZSTD_LEVEL_MAX for RENDER_ZSTD, or 0
 * for RENDER_ZSTD_LEVEL; it is 0 for the others. 0 or -errno with @e, -EINVAL for a level that is
 * none.
 */
int squash_new(int fd, const char *where, enum render_compression compression, int level,
	       struct squash **ret, struct err *e);

/* Accepts NULL. */
void squash_free(struct squash *s);
DEFINE_FREEP(squash);

/*
 * Starts the content of a file of @size bytes. Exactly @size bytes must follow as data and holes,
 * then squash_end_file(), which notes in the regular file @inode of @t where they are. All return
 * 0, or -errno with @e (-ENOSPC if the disk is full).
 */
int squash_begin_file(struct squash *s, uint64_t size, struct err *e);
int squash_data(struct squash *s, const void *data, size_t len, struct err *e);
int squash_hole(struct squash *s, uint64_t len, struct err *e);
int squash_end_file(struct squash *s, struct tree *t, struct tree_inode *inode, struct err *e);

/* Bytes written so far; after squash_finish(), of the whole file. */
uint64_t squash_size(const struct squash *s);

/*
 * Writes the tree, whose regular files must have had their content, and the tables. The image is
 * complete then; the caller syncs the file. 0 or -errno with @e.
 */
int squash_finish(struct squash *s, struct tree *t, struct err *e);

/* After squash_finish(), once: the content digest of the file (render_content_digest()). */
void squash_digest(struct squash *s, struct digest *ret);

#endif
