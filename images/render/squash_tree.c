/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the tree is walked three times, always in the same order, so that nothing of
 * it is needed in memory a second time. The first walk sorts directories and gives out inode
 * numbers, because a directory's inode names its parent's number. The second writes inodes, leaves
 * first, because a directory's entries name the places of the inodes; an inode of a directory in
 * turn names the place of its listing in the directory table, which comes behind the inode table,
 * so listings go to a file that forgets them. The third writes the same listings again, into the
 * image. The export table, places of inodes by number, is written in a walk in the order of the
 * first one. Depth is bounded by TREE_DEPTH_MAX, so recursion is.
 *
 * Order of the image: contents, inodes, directories, fragments, export table, ids, attributes.
 */
#include <endian.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/meta_writer.h>
#include <sqfs/xattr_writer.h>
#include <stdlib.h>
#include <string.h>

#include "images/render/squash_tree.h"

#define META_BLOCK ((size_t)SQFS_META_BLOCK_SIZE)
#define NO_XATTRS  0xFFFFFFFFU
#define UNWRITTEN  UINT32_MAX

/*
 * Metadata blocks in which inodes begin: what 32 bits of tree_inode.place can tell from UNWRITTEN.
 * Only block lists of files of many terabytes need more.
 */
#define INODE_BLOCKS_MAX ((size_t)(1U << 19) - 1)

#define REFS_PER_BLOCK (META_BLOCK / sizeof(uint64_t)) /* of the export table */
#define LIST_CHUNK     1024                            /* entries of a block list at a time */
/* What the kernel adds to the size of a listing in a directory's inode, for "." and "..". */
#define DIR_SIZE_OFFSET 3

struct writer {
	struct squash *s;
	struct tree *tree;
	struct squash_file forget; /* takes listings while their places are found */
	sqfs_meta_writer_t *inodes;
	sqfs_meta_writer_t *listings;
	struct squash_listing listing;
	sqfs_inode_generic_t *dir_inode; /* with room for the index of @listing */
	sqfs_id_table_t *ids;
	sqfs_xattr_writer_t *xattrs;
	uint32_t n_inodes;
	uint32_t *block_starts; /* places of the metadata blocks that inodes begin in */
	size_t n_blocks;
	uint64_t *export_blocks; /* places of the export table's blocks */
	uint32_t n_exported;
	uint32_t id_indices[TREE_OWNERS_MAX]; /* of owners in @ids, plus 1; by tree_inode.owner */
	struct err *e;
};

static int squash_tree_fail(struct writer *w, int code)
{
	return squash_fail(w->s, code, w->e);
}

/* Index of a uid or gid, the owner @owner of the tree, in the table. */
static int id_index(struct writer *w, uint16_t owner, uint32_t id, sqfs_u16 *ret)
{
	if (w->id_indices[owner] == 0) {
		int r = sqfs_id_table_id_to_index(w->ids, id, ret);
		if (r < 0)
			return squash_tree_fail(w, r);
		w->id_indices[owner] = *ret + 1U;
	}
	*ret = (sqfs_u16)(w->id_indices[owner] - 1);
	return 0;
}

/* Records the attributes of @inode. */
static int add_xattrs(struct writer *w, const struct tree_inode *inode, uint32_t *ret)
{
	*ret = NO_XATTRS;
	if (!inode->xattrs)
		return 0;
	int r = sqfs_xattr_writer_begin(w->xattrs, 0);
	for (const struct tree_xattr *x = tree_xattrs(inode); x && r == 0; x = tree_next_xattr(x))
		r = sqfs_xattr_writer_add(w->xattrs, x->name, tree_xattr_value(x), x->size);
	if (r == 0)
		r = sqfs_xattr_writer_end(w->xattrs, ret);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

/* A squashfs inode with room for @payload bytes behind it. */
static sqfs_inode_generic_t *new_inode(size_t payload)
{
	sqfs_inode_generic_t *out = calloc(1, sizeof(*out) + payload);
	if (out)
		out->payload_bytes_available = out->payload_bytes_used = (uint32_t)payload;
	return out;
}

static sqfs_inode_generic_t *file_inode(const struct tree_inode *inode,
					const struct tree_content *c, uint32_t xattr)
{
	sqfs_inode_generic_t *out = new_inode(0); /* the block list follows, see write_blocks() */
	if (!out)
		return NULL;
	if (inode->nlink == 1 && xattr == NO_XATTRS && c->sparse == 0 && c->start <= UINT32_MAX &&
	    c->size <= UINT32_MAX) {
		out->base.type = SQFS_INODE_FILE;
		out->data.file.blocks_start = (uint32_t)c->start;
		out->data.file.file_size = (uint32_t)c->size;
		out->data.file.fragment_index = c->fragment;
		out->data.file.fragment_offset = c->fragment_offset;
		return out;
	}
	out->base.type = SQFS_INODE_EXT_FILE;
	out->data.file_ext.blocks_start = c->start;
	out->data.file_ext.file_size = c->size;
	out->data.file_ext.sparse = c->sparse;
	out->data.file_ext.nlink = inode->nlink;
	out->data.file_ext.fragment_idx = c->fragment;
	out->data.file_ext.fragment_offset = c->fragment_offset;
	out->data.file_ext.xattr_idx = xattr;
	return out;
}

static sqfs_inode_generic_t *symlink_inode(const struct tree_inode *inode, uint32_t xattr)
{
	const char *target = tree_target(inode);
	size_t len = strlen(target);
	sqfs_inode_generic_t *out = new_inode(len);
	if (!out)
		return NULL;
	memcpy(out->extra, target, len);
	out->base.type = SQFS_INODE_SLINK;
	out->data.slink.nlink = inode->nlink;
	out->data.slink.target_size = (uint32_t)len;
	if (xattr != NO_XATTRS) {
		out->base.type = SQFS_INODE_EXT_SLINK;
		out->data.slink_ext.xattr_idx = xattr;
	}
	return out;
}

static sqfs_inode_generic_t *device_inode(const struct tree_inode *inode, uint32_t xattr)
{
	sqfs_inode_generic_t *out = new_inode(0);
	if (!out)
		return NULL;
	uint32_t major = tree_major(inode), minor = tree_minor(inode);
	bool is_char = S_ISCHR(inode->mode);
	out->base.type = is_char ? SQFS_INODE_CDEV : SQFS_INODE_BDEV;
	out->data.dev.nlink = inode->nlink;
	/* The kernel's new_encode_dev(). */
	out->data.dev.devno = (minor & 0xff) | major << 8 | (minor & ~0xffU) << 12;
	if (xattr != NO_XATTRS) {
		out->base.type = is_char ? SQFS_INODE_EXT_CDEV : SQFS_INODE_EXT_BDEV;
		out->data.dev_ext.xattr_idx = xattr;
	}
	return out;
}

static sqfs_inode_generic_t *ipc_inode(const struct tree_inode *inode, uint32_t xattr)
{
	sqfs_inode_generic_t *out = new_inode(0);
	if (!out)
		return NULL;
	bool is_fifo = S_ISFIFO(inode->mode);
	out->base.type = is_fifo ? SQFS_INODE_FIFO : SQFS_INODE_SOCKET;
	out->data.ipc.nlink = inode->nlink;
	if (xattr != NO_XATTRS) {
		out->base.type = is_fifo ? SQFS_INODE_EXT_FIFO : SQFS_INODE_EXT_SOCKET;
		out->data.ipc_ext.xattr_idx = xattr;
	}
	return out;
}

/* Notes that inodes begin in the metadata block at @start. */
static int add_block_start(struct writer *w, uint64_t start)
{
	if (w->n_blocks == INODE_BLOCKS_MAX || start > UINT32_MAX)
		return err_set(w->e, -EFBIG, "the files of the image are too large");
	if (!GROW(w->block_starts, w->n_blocks))
		return squash_tree_fail(w, SQFS_ERROR_ALLOC);
	w->block_starts[w->n_blocks++] = (uint32_t)start;
	return 0;
}

/* Notes where the next inode goes. */
static int take_place(struct writer *w, struct tree_inode *inode)
{
	sqfs_u64 block;
	sqfs_u32 offset;
	sqfs_meta_writer_get_position(w->inodes, &block, &offset);
	if (w->n_blocks == 0 || w->block_starts[w->n_blocks - 1] != block) {
		int r = add_block_start(w, block);
		if (r < 0)
			return r;
	}
	inode->place = (uint32_t)((w->n_blocks - 1) * META_BLOCK + offset);
	return 0;
}

/* Fills in what all inodes have, writes @out and notes its place. */
static int write_inode(struct writer *w, struct tree_inode *inode, sqfs_inode_generic_t *out)
{
	out->base.mode = inode->mode;
	out->base.mod_time = inode->mtime;
	out->base.inode_number = inode->number;
	int r = id_index(w, inode->owner, tree_uid(inode), &out->base.uid_idx);
	if (r == 0)
		r = id_index(w, inode->group, tree_gid(inode), &out->base.gid_idx);
	if (r == 0)
		r = take_place(w, inode);
	if (r < 0)
		return r;
	r = sqfs_meta_writer_write_inode(w->inodes, out);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

/* Writes the block list behind the inode of a file. */
static int write_blocks(struct writer *w, const struct tree_content *c)
{
	uint32_t list[LIST_CHUNK];
	for (size_t i = 0; i < c->n_runs; i++) {
		uint32_t left = c->runs[i].count;
		for (size_t k = 0; k < MIN(left, (uint32_t)LIST_CHUNK); k++)
			list[k] = htole32(c->runs[i].block);
		while (left > 0) {
			uint32_t n = MIN(left, (uint32_t)LIST_CHUNK);
			int r = sqfs_meta_writer_append(w->inodes, list, n * sizeof(*list));
			if (r < 0)
				return squash_tree_fail(w, r);
			left -= n;
		}
	}
	return 0;
}

static void cleanup_inode(sqfs_inode_generic_t **i)
{
	sqfs_free(*i);
}

/* Writes an inode that is not a directory, once. */
static int write_leaf(struct writer *w, struct tree_inode *inode)
{
	if (inode->place != UNWRITTEN)
		return 0;
	uint32_t xattr;
	int r = add_xattrs(w, inode, &xattr);
	if (r < 0)
		return r;
	struct tree_content c = { .n_runs = 0 };
	CLEANUP(cleanup_inode) sqfs_inode_generic_t *out = NULL;
	if (S_ISREG(inode->mode)) {
		tree_get_content(inode, &c);
		out = file_inode(inode, &c, xattr);
	} else if (S_ISLNK(inode->mode)) {
		out = symlink_inode(inode, xattr);
	} else if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) {
		out = device_inode(inode, xattr);
	} else {
		out = ipc_inode(inode, xattr);
	}
	if (!out)
		return squash_tree_fail(w, SQFS_ERROR_ALLOC);
	r = write_inode(w, inode, out);
	return r < 0 ? r : write_blocks(w, &c);
}

/* Writes the inode of a directory whose listing was the last one written. */
static int write_dir_inode(struct writer *w, const struct tree_node *dir)
{
	struct tree_inode *inode = tree_inode_of(dir);
	const struct squash_listing *l = &w->listing;
	uint32_t xattr;
	int r = add_xattrs(w, inode, &xattr);
	if (r < 0)
		return r;
	if (l->block > UINT32_MAX || l->size > UINT32_MAX - DIR_SIZE_OFFSET)
		return err_set(w->e, -EFBIG, "the directories of the image are too large");
	/* The root's parent is one beyond the last inode, as mksquashfs has it. */
	const struct tree_node *above = tree_parent(dir);
	uint32_t parent = above ? tree_inode_of(above)->number : w->n_inodes + 1;
	sqfs_inode_generic_t *out = w->dir_inode;
	out->payload_bytes_used = 0;
	if (xattr == NO_XATTRS && l->size + DIR_SIZE_OFFSET <= UINT16_MAX) {
		out->base.type = SQFS_INODE_DIR;
		out->data.dir.start_block = (sqfs_u32)l->block;
		out->data.dir.nlink = l->n_subdirs + 2;
		out->data.dir.size = (sqfs_u16)(l->size + DIR_SIZE_OFFSET);
		out->data.dir.offset = (sqfs_u16)l->offset;
		out->data.dir.parent_inode = parent;
		return write_inode(w, inode, out);
	}
	bool has_index = l->index_wanted <= SQUASH_DIR_INDEX_MAX;
	out->base.type = SQFS_INODE_EXT_DIR;
	out->data.dir_ext.nlink = l->n_subdirs + 2;
	out->data.dir_ext.size = (sqfs_u32)(l->size + DIR_SIZE_OFFSET);
	out->data.dir_ext.start_block = (sqfs_u32)l->block;
	out->data.dir_ext.parent_inode = parent;
	out->data.dir_ext.inodex_count = has_index ? (sqfs_u16)l->n_index : 0;
	out->data.dir_ext.offset = (sqfs_u16)l->offset;
	out->data.dir_ext.xattr_idx = xattr;
	out->payload_bytes_used = has_index ? (sqfs_u32)l->index_used : 0;
	return write_inode(w, inode, out);
}

static int write_listing(struct writer *w, const struct tree_node *dir)
{
	int r = squash_write_listing(&w->listing, w->listings, w->block_starts, dir);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

/* Writes everything below @dir, then (to be forgotten) its listing, then its inode. */
static int write_dir(struct writer *w, struct tree_node *dir)
{
	int r = 0;
	for (struct tree_node *c = tree_children(dir); c && r == 0; c = tree_next(c))
		if (S_ISDIR(tree_inode_of(c)->mode))
			r = write_dir(w, c);
	for (struct tree_node *c = tree_children(dir); c && r == 0; c = tree_next(c))
		if (!S_ISDIR(tree_inode_of(c)->mode))
			r = write_leaf(w, tree_inode_of(c));
	if (r == 0)
		r = write_listing(w, dir);
	return r < 0 ? r : write_dir_inode(w, dir);
}

/* Writes the listings in the order in which write_dir() did. */
static int write_listings(struct writer *w, const struct tree_node *dir)
{
	int r = 0;
	for (struct tree_node *c = tree_children(dir); c && r == 0; c = tree_next(c))
		if (S_ISDIR(tree_inode_of(c)->mode))
			r = write_listings(w, c);
	return r < 0 ? r : write_listing(w, dir);
}

static void number_inode(struct writer *w, struct tree_inode *inode)
{
	if (inode->flags & TREE_INODE_NUMBERED)
		return;
	inode->flags |= TREE_INODE_NUMBERED;
	inode->number = ++w->n_inodes;
	inode->place = UNWRITTEN;
}

/* Sorts and numbers the inodes below @dir: first its own children, then theirs. */
static void number_inodes(struct writer *w, struct tree_node *dir)
{
	tree_sort(dir);
	for (struct tree_node *c = tree_children(dir); c; c = tree_next(c))
		number_inode(w, tree_inode_of(c));
	for (struct tree_node *c = tree_children(dir); c; c = tree_next(c))
		if (S_ISDIR(tree_inode_of(c)->mode))
			number_inodes(w, c);
}

static int start_listings(struct writer *w, sqfs_file_t *file)
{
	sqfs_destroy(w->listings);
	w->listings = sqfs_meta_writer_create(file, &w->s->compressor.base, 0);
	return w->listings ? 0 : squash_tree_fail(w, SQFS_ERROR_ALLOC);
}

static int write_inodes(struct writer *w)
{
	struct tree_node *root = tree_root(w->tree);
	number_inode(w, tree_inode_of(root));
	number_inodes(w, root);
	sqfs_super_t *super = &w->s->super;
	super->inode_table_start = w->s->file.size;
	super->inode_count = w->n_inodes;
	int r = start_listings(w, &w->forget.base);
	if (r == 0)
		r = write_dir(w, root);
	if (r < 0)
		return r;
	r = sqfs_meta_writer_flush(w->inodes);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

static int write_directories(struct writer *w)
{
	w->s->super.directory_table_start = w->s->file.size;
	w->listing.index = NULL;
	int r = start_listings(w, &w->s->file.base);
	if (r == 0)
		r = write_listings(w, tree_root(w->tree));
	if (r < 0)
		return r;
	r = sqfs_meta_writer_flush(w->listings);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

/* An inode's place as squashfs has it. */
static uint64_t inode_ref(const struct writer *w, const struct tree_inode *inode)
{
	uint64_t block = w->block_starts[inode->place / META_BLOCK];
	return block << 16 | inode->place % META_BLOCK;
}

/* Appends the place of an inode to the export table, once. */
static int export_inode(struct writer *w, sqfs_meta_writer_t *table, struct tree_inode *inode)
{
	if (!(inode->flags & TREE_INODE_NUMBERED))
		return 0;
	inode->flags &= (uint8_t)~TREE_INODE_NUMBERED;
	if (w->n_exported % REFS_PER_BLOCK == 0)
		w->export_blocks[w->n_exported / REFS_PER_BLOCK] = htole64(w->s->file.size);
	w->n_exported++;
	uint64_t ref = htole64(inode_ref(w, inode));
	int r = sqfs_meta_writer_append(table, &ref, sizeof(ref));
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

/* Exports what is below @dir in the order of number_inodes(). */
static int export_inodes(struct writer *w, sqfs_meta_writer_t *table, const struct tree_node *dir)
{
	int r = 0;
	for (struct tree_node *c = tree_children(dir); c && r == 0; c = tree_next(c))
		r = export_inode(w, table, tree_inode_of(c));
	for (struct tree_node *c = tree_children(dir); c && r == 0; c = tree_next(c))
		if (S_ISDIR(tree_inode_of(c)->mode))
			r = export_inodes(w, table, c);
	return r;
}

static void cleanup_object(void *p)
{
	sqfs_destroy(*(void **)p);
}

static int write_export_table(struct writer *w)
{
	sqfs_file_t *file = &w->s->file.base;
	struct tree_node *root = tree_root(w->tree);
	CLEANUP(cleanup_object)
	sqfs_meta_writer_t *table = sqfs_meta_writer_create(file, &w->s->compressor.base, 0);
	size_t n_blocks = (w->n_inodes + REFS_PER_BLOCK - 1) / REFS_PER_BLOCK;
	w->export_blocks = calloc(n_blocks, sizeof(*w->export_blocks));
	if (!table || !w->export_blocks)
		return squash_tree_fail(w, SQFS_ERROR_ALLOC);
	int r = export_inode(w, table, tree_inode_of(root));
	if (r == 0)
		r = export_inodes(w, table, root);
	if (r < 0)
		return r;
	r = sqfs_meta_writer_flush(table);
	w->s->super.export_table_start = w->s->file.size;
	w->s->super.flags |= SQFS_FLAG_EXPORTABLE;
	if (r == 0)
		r = file->write_at(file, w->s->file.size, w->export_blocks,
				   n_blocks * sizeof(*w->export_blocks));
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

static int write_tables(struct writer *w)
{
	struct squash *s = w->s;
	sqfs_file_t *file = &s->file.base;
	s->super.root_inode_ref = inode_ref(w, tree_inode_of(tree_root(w->tree)));
	int r = sqfs_frag_table_write(s->fragments, file, &s->super, &s->compressor.base);
	if (r < 0)
		return squash_tree_fail(w, r);
	r = write_export_table(w);
	if (r < 0)
		return r;
	r = sqfs_id_table_write(w->ids, file, &s->super, &s->compressor.base);
	if (r == 0)
		r = sqfs_xattr_writer_flush(w->xattrs, file, &s->super, &s->compressor.base);
	if (r == 0) {
		s->super.bytes_used = s->file.size;
		r = sqfs_super_write(&s->super, file);
	}
	uint64_t aligned = (s->file.size + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
	if (r == 0)
		r = file->truncate(file, aligned);
	return r < 0 ? squash_tree_fail(w, r) : 0;
}

static void writer_free(struct writer **at)
{
	struct writer *w = *at;
	if (!w)
		return;
	sqfs_destroy(w->xattrs);
	sqfs_destroy(w->ids);
	sqfs_destroy(w->listings);
	sqfs_destroy(w->inodes);
	free(w->dir_inode);
	free(w->block_starts);
	free(w->export_blocks);
	free(w);
}

static int forget_write(sqfs_file_t *base, sqfs_u64 offset, const void *mem, size_t size)
{
	struct squash_file *f = (struct squash_file *)base;
	(void)mem;
	f->size = MAX(f->size, offset + size);
	return 0;
}

static int writer_init(struct writer *w, struct squash *s)
{
	w->forget.base = s->file.base;
	w->forget.base.write_at = forget_write;
	w->inodes = sqfs_meta_writer_create(&s->file.base, &s->compressor.base, 0);
	w->ids = sqfs_id_table_create(0);
	w->xattrs = sqfs_xattr_writer_create(0);
	w->dir_inode = new_inode(SQUASH_DIR_INDEX_MAX);
	if (!w->inodes || !w->ids || !w->xattrs || !w->dir_inode)
		return -ENOMEM;
	w->listing.index = (char *)w->dir_inode->extra;
	return 0;
}

int squash_write_tree(struct squash *s, struct tree *t, struct err *e)
{
	CLEANUP(writer_free) struct writer *w = calloc(1, sizeof(*w));
	if (!w)
		return squash_fail(s, SQFS_ERROR_ALLOC, e);
	*w = (struct writer){ .s = s, .tree = t, .e = e };
	if (writer_init(w, s) < 0)
		return squash_tree_fail(w, SQFS_ERROR_ALLOC);
	int r = write_inodes(w);
	if (r == 0)
		r = write_directories(w);
	return r < 0 ? r : write_tables(w);
}
