/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a file are: a sorted list of pieces, with holes between them.
 *
 * Readers (squashfs, ext4, a directory) describe a file so, and the archive writer knows no more of
 * them.
 */
#ifndef IMAGES_EXPORT_CONTENT_H
#define IMAGES_EXPORT_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#include "images/render/tree.h"
#include "lib/base/err.h"

/* Pieces of one file: a 16 GiB disk written in every other block has 2^21. */
#define CONTENT_PIECES_MAX ((size_t)1 << 22)

/* What tree_inode.layer says in the trees of an export: which reader knows the content. */
enum content_layer {
	CONTENT_NONE,  /* the root of an empty tree */
	CONTENT_IMAGE, /* tree_inode.place is for image.c */
	CONTENT_DISK,  /* tree_inode.place is an ext4 inode number, or for upper.c */
	CONTENT_COUNT_,
};

struct content_piece {
	uint64_t offset; /* in the file */
	uint64_t len;
	uint64_t at; /* where the reader finds it */
};

struct content_map {
	struct content_piece *v; /* owned; sorted by offset, not overlapping */
	size_t n;
};

#define CONTENT_MAP_INIT ((struct content_map){ 0 })

/* Frees the list. Accepts CONTENT_MAP_INIT. */
void content_map_deinit(struct content_map *m);

/*
 * Appends a piece, or makes the last one longer if both ends meet. 0; -EBADMSG if it begins before
 * the end of the last one or wraps; -E2BIG at CONTENT_PIECES_MAX; -ENOMEM.
 */
int content_map_add(struct content_map *m, uint64_t offset, uint64_t len, uint64_t at);

/* Cuts off what lies behind @size. */
void content_map_clip(struct content_map *m, uint64_t size);

/*
 * Turns holes of less than @min bytes, also at the end of a file of @size bytes, into pieces of
 * zeros (at == CONTENT_ZEROS), so that the list is worth being told. 0 or -errno as above.
 */
#define CONTENT_ZEROS UINT64_MAX
int content_map_fill(struct content_map *m, uint64_t size, uint64_t min);

/* One kind of file system, as the archive writer sees it. Both return 0 or -errno with @e. */
struct content_reader {
	/* Fills the empty @ret for the regular file @inode, which then is the current one. */
	int (*map)(void *ctx, const struct tree_inode *inode, struct content_map *ret,
		   struct err *e);
	/* Reads @len bytes that lie @skip bytes into a piece of the current file. */
	int (*read)(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		    size_t len, struct err *e);
	void *ctx;
};

#endif
