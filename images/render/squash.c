/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a file's bytes collect in @block. A full block that is all zeros becomes a
 * hole, any other is appended to the image. What is left at the end of the file moves
 * to @fragment, which is appended when the next end does not fit. Everything is appended; nothing
 * that was written is read or changed again, except the superblock at the very end, so the file is
 * hashed as it is written.
 */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "images/render/squash_int.h"
#include "lib/os/fd.h"

static_assert(sizeof(sqfs_super_t) == SQUASH_SUPER_SIZE, "the superblock of squashfs 4.0");

#define RUNS_MIN ((size_t)256) /* allocated at first */

#define STORED_UNCOMPRESSED (UINT32_C(1) << 24) /* flag in a block's size */

static int file_read_at(sqfs_file_t *base, sqfs_u64 offset, void *mem, size_t size)
{
	struct squash_file *f = (struct squash_file *)base;
	size_t got;
	int r = fd_read_at(f->fd, mem, size, offset, &got);
	if (r < 0) {
		f->error = r;
		return SQFS_ERROR_IO;
	}
	return got < size ? SQFS_ERROR_OUT_OF_BOUNDS : 0;
}

/* Accounts for bytes that are written: the superblock, or more at the end. */
static int note_bytes(struct squash_file *f, uint64_t offset, const void *mem, size_t size)
{
	if (offset == 0 && size == SQUASH_SUPER_SIZE)
		memcpy(f->super, mem, size);
	else if (offset == f->size)
		hasher_update(&f->hash, mem, size);
	else
		return SQFS_ERROR_INTERNAL;
	f->size = MAX(f->size, offset + size);
	return 0;
}

static int file_write_at(sqfs_file_t *base, sqfs_u64 offset, const void *mem, size_t size)
{
	struct squash_file *f = (struct squash_file *)base;
	int r = fd_write_at(f->fd, mem, size, offset);
	if (r < 0) {
		f->error = r;
		return SQFS_ERROR_IO;
	}
	return note_bytes(f, offset, mem, size);
}

static sqfs_u64 file_get_size(const sqfs_file_t *base)
{
	return ((const struct squash_file *)base)->size;
}

/* The image only ever grows; what it grows by are zeros. */
static int file_truncate(sqfs_file_t *base, sqfs_u64 size)
{
	static const unsigned char zeros[IMAGE_ALIGNMENT];
	struct squash_file *f = (struct squash_file *)base;
	if (size < f->size || size - f->size > sizeof(zeros))
		return SQFS_ERROR_INTERNAL;
	return size == f->size ? 0 : file_write_at(base, f->size, zeros, (size_t)(size - f->size));
}

/* Yields the size of the compressed data in c->packed, or 0 if it did not get smaller. */
static sqfs_s32 squash_pack(struct squash_compressor *c, const unsigned char *in, sqfs_u32 size)
{
	sqfs_s32 n = c->inner->do_block(c->inner, in, size, c->packed, sizeof(c->packed));
	return n > 0 && (sqfs_u32)n >= size ? 0 : n;
}

/* The same for libsquashfs, to which 0 means "leave it plain". */
static sqfs_s32 compress(sqfs_compressor_t *base, const sqfs_u8 *in, sqfs_u32 size, sqfs_u8 *out,
			 sqfs_u32 room)
{
	struct squash_compressor *c = (struct squash_compressor *)base;
	sqfs_s32 n = squash_pack(c, in, size);
	if (n > 0 && (sqfs_u32)n > room)
		return 0;
	if (n > 0)
		memcpy(out, c->packed, (size_t)n);
	return n;
}

/* Superblock (to be rewritten) and compressor options, which some must have. */
static int write_head(struct squash *s, SQFS_COMPRESSOR id, struct err *e)
{
	int r = sqfs_super_init(&s->super, SQUASH_BLOCK_SIZE, 0, id);
	if (!s->compress_contents)
		s->super.flags |= SQFS_FLAG_UNCOMPRESSED_DATA | SQFS_FLAG_UNCOMPRESSED_FRAGMENTS;
	if (r == 0)
		r = sqfs_super_write(&s->super, &s->file.base);
	if (r == 0)
		r = s->compressor.inner->write_options(s->compressor.inner, &s->file.base);
	if (r < 0)
		return squash_fail(s, r, e);
	if (r > 0)
		s->super.flags |= SQFS_FLAG_COMPRESSOR_OPTIONS;
	return 0;
}

static int configure(enum render_compression compression, int level, sqfs_compressor_config_t *ret,
		     struct err *e)
{
	bool is_zstd = compression == RENDER_ZSTD;
	if (level < 0 || level > (is_zstd ? RENDER_ZSTD_LEVEL_MAX : 0))
		return err_set(e, -EINVAL, "images cannot be compressed with the level %d (%s)",
			       level, is_zstd ? "zstd has 1 to 19" : "only zstd has levels");
	SQFS_COMPRESSOR id = is_zstd ? SQFS_COMP_ZSTD : SQFS_COMP_LZ4;
	if (sqfs_compressor_config_init(ret, id, SQUASH_BLOCK_SIZE, 0) != 0)
		return err_set(e, -EOPNOTSUPP, "the squashfs library has no %s",
			       is_zstd ? "zstd" : "lz4");
	if (is_zstd)
		ret->level = (sqfs_u32)(level > 0 ? level : RENDER_ZSTD_LEVEL);
	return 0;
}

int squash_new(int fd, const char *where, enum render_compression compression, int level,
	       struct squash **ret, struct err *e)
{
	sqfs_compressor_config_t config;
	int r = configure(compression, level, &config, e);
	if (r < 0)
		return r;
	CLEANUP(squash_freep) struct squash *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->compress_contents = compression != RENDER_PLAIN;
	s->file.fd = fd;
	hasher_init(&s->file.hash);
	s->where = where;
	s->file.base.read_at = file_read_at;
	s->file.base.write_at = file_write_at;
	s->file.base.get_size = file_get_size;
	s->file.base.truncate = file_truncate;
	s->compressor.base.do_block = compress;
	r = sqfs_compressor_create(&config, &s->compressor.inner);
	if (r != 0)
		return squash_fail(s, r, e);
	s->fragments = sqfs_frag_table_create(0);
	if (!s->fragments)
		return squash_fail(s, SQFS_ERROR_ALLOC, e);
	r = write_head(s, config.id, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void squash_free(struct squash *s)
{
	if (!s)
		return;
	sqfs_destroy(s->fragments);
	sqfs_destroy(s->compressor.inner);
	free(s->runs);
	free(s);
}

uint64_t squash_size(const struct squash *s)
{
	return s->file.size;
}

/* Appends @len bytes of contents. *ret is the size as squashfs has it. */
static int append_block(struct squash *s, const unsigned char *data, size_t len, uint32_t *ret,
			struct err *e)
{
	sqfs_s32 n = s->compress_contents ? squash_pack(&s->compressor, data, (sqfs_u32)len) : 0;
	if (n < 0)
		return squash_fail(s, n, e);
	*ret = n > 0 ? (uint32_t)n : (uint32_t)len | STORED_UNCOMPRESSED;
	int r = file_write_at(&s->file.base, s->file.size, n > 0 ? s->compressor.packed : data,
			      n > 0 ? (size_t)n : len);
	return r < 0 ? squash_fail(s, r, e) : 0;
}

static bool all_zero(const unsigned char *data, size_t len)
{
	return len == 0 || (data[0] == 0 && memcmp(data, data + 1, len - 1) == 0);
}

/* Makes room for one more run. */
static int reserve_run(struct squash *s, struct err *e)
{
	size_t n = s->content.n_runs;
	if (n == SQUASH_RUNS_MAX)
		return err_set(e, -EFBIG,
			       "a file has more than %zu changes between data and holes (pack it "
			       "without holes)",
			       SQUASH_RUNS_MAX);
	if (n < s->alloc_runs)
		return 0;
	size_t alloc = MAX(2 * n, RUNS_MIN);
	struct tree_run *runs = reallocarray(s->runs, alloc, sizeof(*runs));
	if (!runs)
		return squash_fail(s, SQFS_ERROR_ALLOC, e);
	s->runs = runs;
	s->alloc_runs = alloc;
	return 0;
}

/* Adds @count blocks that squashfs describes with @block to the file. */
static int add_blocks(struct squash *s, uint32_t block, uint32_t count, struct err *e)
{
	struct tree_content *c = &s->content;
	if (block == 0)
		c->sparse += count * (uint64_t)SQUASH_BLOCK_SIZE;
	if (c->n_runs > 0 && s->runs[c->n_runs - 1].block == block) {
		s->runs[c->n_runs - 1].count += count;
		return 0;
	}
	int r = reserve_run(s, e);
	if (r < 0)
		return r;
	s->runs[c->n_runs++] = (struct tree_run){ block, count };
	return 0;
}

/* Ends the current block: a hole, or data in the image. */
static int flush_block(struct squash *s, struct err *e)
{
	size_t len = s->n_block;
	uint32_t block = 0;
	s->n_block = 0;
	if (!all_zero(s->block, len)) {
		int r = append_block(s, s->block, len, &block, e);
		return r < 0 ? r : add_blocks(s, block, 1, e);
	}
	int r = add_blocks(s, 0, 1, e);
	s->content.sparse -= SQUASH_BLOCK_SIZE - len; /* the last one may be shorter */
	return r;
}

int squash_begin_file(struct squash *s, uint64_t size, struct err *e)
{
	s->content = (struct tree_content){ .start = s->file.size, .fragment = TREE_NO_FRAGMENT };
	if (size / SQUASH_BLOCK_SIZE >= SQUASH_BLOCKS_MAX)
		return err_set(e, -EFBIG, "a file of %llu bytes is too large",
			       (unsigned long long)size);
	s->expected = size;
	s->n_block = 0;
	return 0;
}

/* Accounts for @len more bytes of the file. */
static int squash_grow(struct squash *s, uint64_t len, struct err *e)
{
	if (len > s->expected - s->content.size)
		return err_set(e, -EBADMSG, "a file is longer than its header says");
	s->content.size += len;
	return 0;
}

int squash_data(struct squash *s, const void *data, size_t len, struct err *e)
{
	int r = squash_grow(s, len, e);
	for (const unsigned char *p = data; r == 0 && len > 0;) {
		size_t n = MIN(len, SQUASH_BLOCK_SIZE - s->n_block);
		memcpy(s->block + s->n_block, p, n);
		s->n_block += n;
		p += n;
		len -= n;
		if (s->n_block == SQUASH_BLOCK_SIZE)
			r = flush_block(s, e);
	}
	return r;
}

/* Adds @len zeros to the current block, which has room for them. */
static int add_zeros(struct squash *s, size_t len, struct err *e)
{
	memset(s->block + s->n_block, 0, len);
	s->n_block += len;
	return s->n_block == SQUASH_BLOCK_SIZE ? flush_block(s, e) : 0;
}

int squash_hole(struct squash *s, uint64_t len, struct err *e)
{
	int r = squash_grow(s, len, e);
	if (r == 0 && s->n_block > 0) {
		size_t n = (size_t)MIN(len, (uint64_t)(SQUASH_BLOCK_SIZE - s->n_block));
		r = add_zeros(s, n, e);
		len -= n;
	}
	if (r == 0 && len >= SQUASH_BLOCK_SIZE)
		r = add_blocks(s, 0, (uint32_t)(len / SQUASH_BLOCK_SIZE), e);
	len %= SQUASH_BLOCK_SIZE;
	return r < 0 || len == 0 ? r : add_zeros(s, (size_t)len, e);
}

/* Writes the fragment block out. */
static int flush_fragment(struct squash *s, struct err *e)
{
	if (s->n_fragment == 0)
		return 0;
	uint64_t at = s->file.size;
	uint32_t size = 0;
	int r = append_block(s, s->fragment, s->n_fragment, &size, e);
	if (r < 0)
		return r;
	s->n_fragment = 0;
	r = sqfs_frag_table_set(s->fragments, s->fragment_index, at, size);
	return r < 0 ? squash_fail(s, r, e) : 0;
}

/* Moves the end of the file from the block to the fragment block. */
static int keep_fragment(struct squash *s, struct err *e)
{
	int r = 0;
	if (s->n_block > SQUASH_BLOCK_SIZE - s->n_fragment)
		r = flush_fragment(s, e);
	if (r == 0 && s->n_fragment == 0) {
		if (sqfs_frag_table_get_size(s->fragments) >= SQUASH_FRAGMENTS_MAX)
			return err_set(e, -EFBIG,
				       "the files of the image are too many and too large");
		r = sqfs_frag_table_append(s->fragments, 0, 0, &s->fragment_index);
		if (r < 0)
			r = squash_fail(s, r, e);
	}
	if (r < 0)
		return r;
	s->content.fragment = s->fragment_index;
	s->content.fragment_offset = (uint32_t)s->n_fragment;
	memcpy(s->fragment + s->n_fragment, s->block, s->n_block);
	s->n_fragment += s->n_block;
	s->n_block = 0;
	return 0;
}

int squash_end_file(struct squash *s, struct tree *t, struct tree_inode *inode, struct err *e)
{
	if (s->content.size != s->expected)
		return err_set(e, -EBADMSG, "a file is shorter than its header says");
	int r = 0;
	if (s->n_block > 0)
		r = all_zero(s->block, s->n_block) ? flush_block(s, e) : keep_fragment(s, e);
	if (r < 0)
		return r;
	s->content.runs = s->runs;
	r = tree_set_content(t, inode, &s->content);
	return r == 0 ? 0 : tree_explain(r, e);
}

int squash_finish(struct squash *s, struct tree *t, struct err *e)
{
	int r = flush_fragment(s, e);
	return r < 0 ? r : squash_write_tree(s, t, e);
}

void squash_digest(struct squash *s, struct digest *ret)
{
	hasher_update(&s->file.hash, s->file.super, sizeof(s->file.super));
	hasher_finish(&s->file.hash, ret);
}
