/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: libext2fs yields the extents of a file (or, of a file without extents, block
 * after block). They must come in rising order, which bounds them by the size of a file; all bytes
 * together must not be more than the disk has, which bounds the sum. Contents are then read from
 * the disk directly.
 */
#include "images/export/ext4_int.h"

/* Adds blocks of a file. *ret_what says what is wrong with them, on -EBADMSG. */
static int add_blocks(struct ext4 *d, uint64_t logical, uint64_t physical, uint64_t count,
		      struct content_map *ret)
{
	uint64_t size = ext4_block_size(d), blocks = ext2fs_blocks_count(d->fs->super);
	if (physical == 0 || physical >= blocks || count > blocks - physical ||
	    logical > UINT32_MAX || count * size > d->bytes_left)
		return -EBADMSG;
	d->bytes_left -= count * size;
	return content_map_add(ret, logical * size, count * size, physical * size);
}

static int map_fail(struct err *e, int code, ext2_ino_t ino)
{
	if (code == -EBADMSG)
		return ext4_damaged(e, "has blocks where none can be", ino);
	return err_sys(e, code, "the scratch disk: inode %u", ino);
}

static int map_extents(struct ext4 *d, ext2_ino_t ino, struct ext2_inode *inode,
		       struct content_map *ret, struct err *e)
{
	ext2_extent_handle_t handle;
	struct ext2fs_extent extent;
	errcode_t code = ext2fs_extent_open2(d->fs, ino, inode, &handle);
	if (code != 0)
		return ext4_fail(d, code, ino, e);
	int r = 0;
	uint64_t end = 0; /* also of extents without content */
	int where = EXT2_EXTENT_ROOT;
	while (r == 0 && (code = ext2fs_extent_get(handle, where, &extent)) == 0) {
		where = EXT2_EXTENT_NEXT;
		if (!(extent.e_flags & EXT2_EXTENT_FLAGS_LEAF))
			continue;
		if (extent.e_len == 0 || extent.e_lblk < end) {
			r = -EBADMSG;
			break;
		}
		end = extent.e_lblk + extent.e_len;
		if (!(extent.e_flags & EXT2_EXTENT_FLAGS_UNINIT))
			r = add_blocks(d, extent.e_lblk, extent.e_pblk, extent.e_len, ret);
	}
	ext2fs_extent_free(handle);
	if (r < 0)
		return map_fail(e, r, ino);
	if (code != EXT2_ET_EXTENT_NO_NEXT && code != EXT2_ET_NO_CURRENT_NODE)
		return ext4_fail(d, code, ino, e);
	return 0;
}

struct walk {
	struct ext4 *d;
	struct content_map *map;
	int error;
};

static int take_block(ext2_filsys fs, blk64_t *block, e2_blkcnt_t index, blk64_t ref_block,
		      int ref_offset, void *ctx)
{
	struct walk *w = ctx;
	(void)fs;
	(void)ref_block;
	(void)ref_offset;
	if (index >= 0)
		w->error = add_blocks(w->d, (uint64_t)index, *block, 1, w->map);
	return w->error < 0 ? BLOCK_ABORT : 0;
}

/* Files that were made without extents, or had them removed by chattr(1). */
static int map_blocks(struct ext4 *d, ext2_ino_t ino, struct content_map *ret, struct err *e)
{
	struct walk w = { .d = d, .map = ret };
	errcode_t code = ext2fs_block_iterate3(
		d->fs, ino, BLOCK_FLAG_READ_ONLY | BLOCK_FLAG_DATA_ONLY, NULL, take_block, &w);
	if (w.error < 0)
		return map_fail(e, w.error, ino);
	return code != 0 ? ext4_fail(d, code, ino, e) : 0;
}

int ext4_map(struct ext4 *d, ext2_ino_t ino, struct ext2_inode *inode, struct content_map *ret,
	     struct err *e)
{
	int r = inode->i_flags & EXT4_EXTENTS_FL ? map_extents(d, ino, inode, ret, e)
						 : map_blocks(d, ino, ret, e);
	if (r == 0)
		content_map_clip(ret, EXT2_I_SIZE(inode));
	return r;
}

static int ext4_data_map(void *ctx, const struct tree_inode *from, struct content_map *ret,
			 struct err *e)
{
	struct ext4 *d = ctx;
	struct ext2_inode inode;
	ext2_ino_t ino = (ext2_ino_t)from->place;
	errcode_t code = ext2fs_read_inode(d->fs, ino, &inode);
	return code != 0 ? ext4_fail(d, code, ino, e) : ext4_map(d, ino, &inode, ret, e);
}

static int read_piece(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		      size_t len, struct err *e)
{
	int r = ext4_read_at(ctx, piece->at + skip, mem, len);
	return r < 0 ? err_sys(e, r, "the scratch disk cannot be read") : 0;
}

struct content_reader ext4_reader(struct ext4 *d)
{
	return (struct content_reader){ .map = ext4_data_map, .read = read_piece, .ctx = d };
}
