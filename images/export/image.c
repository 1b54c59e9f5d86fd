/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a directory's entries are read into the tree first, then its subdirectories
 * in turn; TREE_DEPTH_MAX bounds the recursion, and with it a directory that contains itself, and
 * TREE_NODES_MAX everything else. Inodes of several names are recognised by their number.
 */
#include "images/export/image.h"

#include <sqfs/compressor.h>
#include <sqfs/data_reader.h>
#include <sqfs/dir.h>
#include <sqfs/error.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/meta_reader.h>
#include <sqfs/super.h>
#include <sqfs/xattr.h>
#include <sqfs/xattr_reader.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/layer.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define NO_XATTRS UINT32_MAX

/* libsquashfs' view of a descriptor. */
struct image_file {
	sqfs_file_t base;
	int fd; /* borrowed */
	uint64_t size;
};

struct image_fs {
	struct image_file file;
	sqfs_super_t super;
	sqfs_compressor_t *compressor;
	sqfs_id_table_t *ids;
	sqfs_meta_reader_t *inodes;
	sqfs_meta_reader_t *listings;
	sqfs_data_reader_t *data;
	sqfs_xattr_reader_t *xattrs; /* NULL: no file has any */
	sqfs_inode_generic_t *current;
	struct tree *tree; /* while it is made */
	uint64_t *refs;    /* by tree_inode.place, an inode number: where the inode is */
	uint32_t *known;   /* references of the tree's inodes, by number, while it is made */
};

static int file_read_at(sqfs_file_t *base, sqfs_u64 offset, void *mem, size_t size)
{
	const struct image_file *f = (const struct image_file *)base;
	size_t got;
	if (fd_read_at(f->fd, mem, size, offset, &got) < 0)
		return SQFS_ERROR_IO;
	return got < size ? SQFS_ERROR_OUT_OF_BOUNDS : 0;
}

static int file_write_at(sqfs_file_t *base, sqfs_u64 offset, const void *mem, size_t size)
{
	(void)base;
	(void)offset;
	(void)mem;
	(void)size;
	return SQFS_ERROR_IO;
}

static sqfs_u64 file_get_size(const sqfs_file_t *base)
{
	return ((const struct image_file *)base)->size;
}

static int file_truncate(sqfs_file_t *base, sqfs_u64 size)
{
	(void)base;
	(void)size;
	return SQFS_ERROR_IO;
}

/* @code is one of libsquashfs, or a TREE_E_ one, which are positive. */
static int image_fail(struct err *e, int code)
{
	if (code > 0)
		return tree_explain(code, e);
	if (code == SQFS_ERROR_ALLOC)
		return err_set(e, -ENOMEM, "out of memory");
	if (code == SQFS_ERROR_IO)
		return err_set(e, -EIO, "the rendered image cannot be read");
	return err_set(e, -EBADMSG, "the rendered image is damaged (libsquashfs code %d)", code);
}

static void cleanup_sqfs(void *p)
{
	sqfs_free(*(void **)p);
}

static int open_tables(struct image_fs *s)
{
	sqfs_compressor_config_t config;
	sqfs_file_t *file = &s->file.base;
	int r = sqfs_super_read(&s->super, file);
	if (r == 0)
		r = sqfs_compressor_config_init(&config, (SQFS_COMPRESSOR)s->super.compression_id,
						s->super.block_size, SQFS_COMP_FLAG_UNCOMPRESS);
	if (r == 0)
		r = sqfs_compressor_create(&config, &s->compressor);
	if (r != 0)
		return r;
	s->ids = sqfs_id_table_create(0);
	s->inodes = sqfs_meta_reader_create(file, s->compressor, s->super.inode_table_start,
					    s->super.directory_table_start);
	s->listings = sqfs_meta_reader_create(file, s->compressor, s->super.directory_table_start,
					      s->super.id_table_start);
	s->data = sqfs_data_reader_create(file, s->super.block_size, s->compressor, 0);
	if (!s->ids || !s->inodes || !s->listings || !s->data)
		return SQFS_ERROR_ALLOC;
	r = sqfs_id_table_read(s->ids, file, &s->super, s->compressor);
	if (r == 0)
		r = sqfs_data_reader_load_fragment_table(s->data, &s->super);
	if (r != 0 || (s->super.flags & SQFS_FLAG_NO_XATTRS))
		return r;
	s->xattrs = sqfs_xattr_reader_create(0);
	return s->xattrs ? sqfs_xattr_reader_load(s->xattrs, &s->super, file, s->compressor)
			 : SQFS_ERROR_ALLOC;
}

int image_fs_open(int fd, struct image_fs **ret, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "the rendered image");
	CLEANUP(image_fs_freep) struct image_fs *s = calloc(1, sizeof(*s));
	if (!s)
		return image_fail(e, SQFS_ERROR_ALLOC);
	s->file.fd = fd;
	s->file.size = (uint64_t)st.st_size;
	s->file.base.read_at = file_read_at;
	s->file.base.write_at = file_write_at;
	s->file.base.get_size = file_get_size;
	s->file.base.truncate = file_truncate;
	int r = open_tables(s);
	if (r != 0)
		return image_fail(e, r);
	if (s->super.inode_count > TREE_NODES_MAX)
		return image_fail(e, TREE_E_FULL);
	*ret = TAKE_PTR(s);
	return 0;
}

void image_fs_free(struct image_fs *s)
{
	if (!s)
		return;
	free(s->refs);
	sqfs_free(s->current);
	sqfs_destroy(s->xattrs);
	sqfs_destroy(s->data);
	sqfs_destroy(s->listings);
	sqfs_destroy(s->inodes);
	sqfs_destroy(s->ids);
	sqfs_destroy(s->compressor);
	free(s);
}

static int read_inode(struct image_fs *s, uint64_t ref, sqfs_inode_generic_t **ret)
{
	return sqfs_meta_reader_read_inode(s->inodes, &s->super, ref >> 16, (size_t)(ref & 0xffff),
					   ret);
}

/* From here on to image_fs_tree(), results are codes for fail(). */

/* Adds the next attribute to @to. */
static int take_xattr(struct image_fs *s, struct tree_inode *to)
{
	CLEANUP(cleanup_sqfs) sqfs_xattr_entry_t *key = NULL;
	CLEANUP(cleanup_sqfs) sqfs_xattr_value_t *value = NULL;
	int r = sqfs_xattr_reader_read_key(s->xattrs, &key);
	if (r == 0)
		r = sqfs_xattr_reader_read_value(s->xattrs, key, &value);
	if (r != 0)
		return r;
	if (value->size > LAYER_XATTR_VALUE_MAX)
		return SQFS_ERROR_CORRUPTED;
	return tree_add_xattr(s->tree, to, (const char *)key->key, value->value, value->size);
}

static int take_xattrs(struct image_fs *s, const sqfs_inode_generic_t *from, struct tree_inode *to)
{
	uint32_t index = NO_XATTRS;
	sqfs_xattr_id_t id;
	int r = sqfs_inode_get_xattr_index(from, &index);
	if (r != 0 || index == NO_XATTRS || !s->xattrs)
		return r;
	r = sqfs_xattr_reader_get_desc(s->xattrs, index, &id);
	if (r == 0)
		r = sqfs_xattr_reader_seek_kv(s->xattrs, &id);
	if (r == 0 && id.count > LAYER_XATTRS_MAX)
		r = SQFS_ERROR_CORRUPTED;
	for (uint32_t i = 0; r == 0 && i < id.count; i++)
		r = take_xattr(s, to);
	return r;
}

static int take_target(struct image_fs *s, const sqfs_inode_generic_t *from, struct tree_inode *to)
{
	uint32_t size = from->data.slink.target_size;
	const char *target = (const char *)from->extra;
	if (size == 0 || size > LAYER_TARGET_MAX || strnlen(target, size) < size)
		return SQFS_ERROR_CORRUPTED;
	return tree_set_target(s->tree, to, target, size);
}

/* The kernel's new_decode_dev(). Plain and extended inodes have the number at one place. */
static void take_device(const sqfs_inode_generic_t *from, struct tree_inode *to)
{
	uint32_t dev = from->data.dev.devno;
	tree_set_device(to, dev >> 8 & 0xfff, (dev & 0xff) | (dev >> 12 & 0xfff00));
}

static int take_owner(struct image_fs *s, const sqfs_inode_generic_t *from, struct tree_inode *to)
{
	uint32_t uid = 0, gid = 0;
	int r = sqfs_id_table_index_to_id(s->ids, from->base.uid_idx, &uid);
	if (r == 0)
		r = sqfs_id_table_index_to_id(s->ids, from->base.gid_idx, &gid);
	return r != 0 ? r : tree_set_owner(s->tree, to, uid, gid);
}

static int take_size(struct image_fs *s, const sqfs_inode_generic_t *from, struct tree_inode *to)
{
	struct tree_content c = { .fragment = TREE_NO_FRAGMENT };
	int r = sqfs_inode_get_file_size(from, &c.size);
	return r != 0 ? r : tree_set_content(s->tree, to, &c);
}

/* Makes the inode @number at @ref. */
static int take_inode(struct image_fs *s, const sqfs_inode_generic_t *from, uint32_t number,
		      uint64_t ref, struct tree_inode **ret)
{
	struct tree_inode *to = NULL;
	int r = tree_inode_new(s->tree, &to);
	if (r != 0)
		return r;
	to->layer = CONTENT_IMAGE;
	to->place = number;
	to->mode = from->base.mode;
	to->mtime = from->base.mod_time;
	s->refs[number] = ref;
	r = take_owner(s, from, to);
	if (r == 0 && S_ISREG(to->mode))
		r = take_size(s, from, to);
	else if (r == 0 && S_ISLNK(to->mode))
		r = take_target(s, from, to);
	else if (S_ISCHR(to->mode) || S_ISBLK(to->mode))
		take_device(from, to);
	if (r == 0)
		r = take_xattrs(s, from, to);
	if (r == 0)
		*ret = to;
	return r;
}

/* The inode @number at @ref, made unless another name led to it before. */
static int find_inode(struct image_fs *s, uint32_t number, uint64_t ref, struct tree_inode **ret)
{
	CLEANUP(cleanup_sqfs) sqfs_inode_generic_t *from = NULL;
	if (number > s->super.inode_count)
		return SQFS_ERROR_CORRUPTED;
	if (s->known[number]) {
		*ret = arena_at(tree_root(s->tree), s->known[number]);
		return S_ISDIR((*ret)->mode) ? SQFS_ERROR_LINK_LOOP : 0;
	}
	int r = read_inode(s, ref, &from);
	if (r == 0)
		r = take_inode(s, from, number, ref, ret);
	if (r == 0)
		s->known[number] = arena_ref(*ret);
	return r;
}

static int add_entry(struct image_fs *s, struct tree_node *dir, const sqfs_dir_entry_t *entry,
		     uint32_t number, uint64_t ref)
{
	struct tree_inode *inode;
	struct tree_node *node;
	const char *name = (const char *)entry->name;
	size_t len = (size_t)entry->size + 1;
	if (!tree_is_name(name, len) || tree_find(s->tree, dir, name, len))
		return SQFS_ERROR_CORRUPTED;
	int r = find_inode(s, number, ref, &inode);
	return r != 0 || tree_is_whiteout(inode) ? r
						 : tree_add(s->tree, dir, name, len, inode, &node);
}

static int read_listing(struct image_fs *s, struct tree_node *dir,
			const sqfs_inode_generic_t *inode)
{
	sqfs_readdir_state_t state;
	int r = sqfs_readdir_state_init(&state, &s->super, inode);
	while (r == 0) {
		CLEANUP(cleanup_sqfs) sqfs_dir_entry_t *entry = NULL;
		uint32_t number;
		uint64_t ref;
		r = sqfs_meta_reader_readdir(s->listings, &state, &entry, &number, &ref);
		if (r == 0)
			r = add_entry(s, dir, entry, number, ref);
		else if (r > 0)
			return 0;
	}
	return r;
}

static int read_dir(struct image_fs *s, struct tree_node *dir, const sqfs_inode_generic_t *inode)
{
	int r = read_listing(s, dir, inode);
	for (struct tree_node *n = tree_children(dir); n && r == 0; n = tree_next(n)) {
		CLEANUP(cleanup_sqfs) sqfs_inode_generic_t *child = NULL;
		if (!S_ISDIR(tree_inode_of(n)->mode))
			continue;
		r = read_inode(s, s->refs[tree_inode_of(n)->place], &child);
		r = r != 0 ? r : read_dir(s, n, child);
	}
	return r;
}

static int read_all(struct image_fs *s)
{
	CLEANUP(cleanup_sqfs) sqfs_inode_generic_t *root = NULL;
	int r = read_inode(s, s->super.root_inode_ref, &root);
	if (r != 0 || !S_ISDIR(root->base.mode))
		return r != 0 ? r : SQFS_ERROR_CORRUPTED;
	struct tree_node *node = tree_root(s->tree);
	struct tree_inode *inode = NULL;
	/* Behind all numbers: what the root's inode says itself does not matter. */
	r = take_inode(s, root, s->super.inode_count + 1, s->super.root_inode_ref, &inode);
	if (r != 0)
		return r;
	tree_set_dir_inode(s->tree, node, inode);
	return read_dir(s, node, root);
}

int image_fs_tree(struct image_fs *s, struct tree **ret, struct err *e)
{
	size_t n = (size_t)s->super.inode_count + 2;
	cleanup_free uint32_t *known = calloc(n, sizeof(*known));
	free(s->refs);
	s->refs = calloc(n, sizeof(*s->refs));
	if (!known || !s->refs || tree_new(&s->tree) < 0)
		return image_fail(e, SQFS_ERROR_ALLOC);
	s->known = known;
	int r = read_all(s);
	struct tree *t = TAKE_PTR(s->tree);
	s->known = NULL;
	if (r == 0)
		*ret = t;
	else
		tree_free(t);
	return r == 0 ? 0 : image_fail(e, r);
}

/* A block of size 0 is a hole. What the blocks do not cover is in a fragment. */
static int image_map(void *ctx, const struct tree_inode *inode, struct content_map *ret,
		     struct err *e)
{
	struct image_fs *s = ctx;
	uint64_t size = tree_size(inode), block = s->super.block_size;
	sqfs_free(TAKE_PTR(s->current));
	int r = read_inode(s, s->refs[inode->place], &s->current);
	if (r != 0 || !s->current)
		return image_fail(e, r);
	size_t n = sqfs_inode_get_file_block_count(s->current);
	for (size_t i = 0; i < n && r == 0 && i * block < size; i++)
		if (s->current->extra[i] != 0)
			r = content_map_add(ret, i * block, block, i * block);
	if (r == 0 && n * block < size)
		r = content_map_add(ret, n * block, size - n * block, n * block);
	content_map_clip(ret, size);
	return r < 0 ? err_sys(e, r, "the rendered image has a file of too many pieces") : 0;
}

static int read_piece(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		      size_t len, struct err *e)
{
	struct image_fs *s = ctx;
	for (size_t done = 0; done < len;) {
		sqfs_s32 n = sqfs_data_reader_read(s->data, s->current, piece->at + skip + done,
						   (char *)mem + done, (sqfs_u32)(len - done));
		if (n <= 0)
			return image_fail(e, n < 0 ? n : SQFS_ERROR_OUT_OF_BOUNDS);
		done += (size_t)n;
	}
	return 0;
}

struct content_reader image_fs_reader(struct image_fs *s)
{
	return (struct content_reader){ .map = image_map, .read = read_piece, .ctx = s };
}
