/*
 * Theory of operation: inode numbers are given out in one walk, because a directory's inode names
 * its parent's number; then the tree is written leaves first, because a directory's entries name
 * the places of the inodes. Depth is bounded by TREE_DEPTH_MAX, so recursion is.
 *
 * Order of the image: contents, inodes, directories, fragments, export table, ids, attributes.
 */
#include <sqfs/dir_writer.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/meta_writer.h>
#include <sqfs/xattr_writer.h>
#include <stdlib.h>
#include <string.h>

#include "host/render/squash_int.h"

#define NO_XATTRS 0xFFFFFFFFU
#define UNWRITTEN UINT64_MAX /* no place in the inode table is that far */

/*
 * A directory inode counts its index entries, one for each run of entries, in 16 bits. Each takes 12
 * bytes and a name; a listing beyond this gets no index, it only speeds up lookups.
 */
#define DIR_INDEX_BYTES_MAX ((size_t)65535 * 13)

#define IMAGE_ALIGNMENT 4096 /* block devices have whole pages */

struct writer {
	struct squash *s;
	struct tree *tree;
	sqfs_meta_writer_t *inodes;
	sqfs_meta_writer_t *listings;
	sqfs_dir_writer_t *dirs;
	sqfs_id_table_t *ids;
	sqfs_xattr_writer_t *xattrs;
	uint32_t n_inodes;
	uint32_t known_ids[SQUASH_IDS_MAX];
	size_t n_ids;
	struct err *e;
};

static int fail(struct writer *w, int code)
{
	return squash_fail(w->s, code, w->e);
}

/* Index of a uid or gid in the table. */
static int id_index(struct writer *w, uint32_t id, uint16_t *ret)
{
	size_t i = 0;
	while (i < w->n_ids && w->known_ids[i] != id)
		i++;
	if (i == w->n_ids) {
		if (i == SQUASH_IDS_MAX)
			return err_set(w->e, -E2BIG, "the image has more than %zu different owners",
				       SQUASH_IDS_MAX);
		w->known_ids[w->n_ids++] = id;
	}
	int r = sqfs_id_table_id_to_index(w->ids, id, ret);
	return r < 0 ? fail(w, r) : 0;
}

/* Records the attributes of @inode. */
static int add_xattrs(struct writer *w, const struct tree_inode *inode, uint32_t *ret)
{
	*ret = NO_XATTRS;
	if (!inode->xattrs)
		return 0;
	int r = sqfs_xattr_writer_begin(w->xattrs, 0);
	for (const struct tree_xattr *x = inode->xattrs; x && r == 0; x = x->next)
		r = sqfs_xattr_writer_add(w->xattrs, x->name, x->value, x->size);
	if (r == 0)
		r = sqfs_xattr_writer_end(w->xattrs, ret);
	return r < 0 ? fail(w, r) : 0;
}

/* A squashfs inode with room for @payload bytes behind it. */
static sqfs_inode_generic_t *new_inode(size_t payload)
{
	sqfs_inode_generic_t *out = calloc(1, sizeof(*out) + payload);
	if (out)
		out->payload_bytes_available = out->payload_bytes_used = (uint32_t)payload;
	return out;
}

static sqfs_inode_generic_t *file_inode(const struct tree_inode *inode, uint32_t xattr)
{
	const struct tree_content *c = &inode->u.content;
	sqfs_inode_generic_t *out = new_inode(0); /* the block list follows, see write_leaf() */
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
	size_t len = strlen(inode->u.target);
	sqfs_inode_generic_t *out = new_inode(len);
	if (!out)
		return NULL;
	memcpy(out->extra, inode->u.target, len);
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
	uint32_t major = inode->u.device.major, minor = inode->u.device.minor;
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

/* Fills in what all inodes have, writes @out and notes its place. */
static int write_inode(struct writer *w, struct tree_inode *inode, sqfs_inode_generic_t *out)
{
	out->base.mode = (uint16_t)inode->mode;
	out->base.mod_time = inode->mtime;
	out->base.inode_number = inode->number;
	int r = id_index(w, inode->uid, &out->base.uid_idx);
	if (r == 0)
		r = id_index(w, inode->gid, &out->base.gid_idx);
	if (r < 0)
		return r;
	sqfs_u64 block;
	sqfs_u32 offset;
	sqfs_meta_writer_get_position(w->inodes, &block, &offset);
	inode->ref = block << 16 | offset;
	r = sqfs_meta_writer_write_inode(w->inodes, out);
	return r < 0 ? fail(w, r) : 0;
}

static void cleanup_inode(sqfs_inode_generic_t **i)
{
	sqfs_free(*i);
}

/* Writes an inode that is no directory, once. */
static int write_leaf(struct writer *w, struct tree_inode *inode)
{
	if (inode->ref != UNWRITTEN)
		return 0;
	uint32_t xattr;
	int r = add_xattrs(w, inode, &xattr);
	if (r < 0)
		return r;
	CLEANUP(cleanup_inode) sqfs_inode_generic_t *out = NULL;
	if (S_ISREG(inode->mode))
		out = file_inode(inode, xattr);
	else if (S_ISLNK(inode->mode))
		out = symlink_inode(inode, xattr);
	else if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode))
		out = device_inode(inode, xattr);
	else
		out = ipc_inode(inode, xattr);
	if (!out)
		return fail(w, SQFS_ERROR_ALLOC);
	r = write_inode(w, inode, out);
	if (r < 0 || !S_ISREG(inode->mode))
		return r;
	/* libsquashfs would put the whole list on the stack, and a file may have millions of blocks. */
	const struct tree_content *c = &inode->u.content;
	r = sqfs_meta_writer_append(w->inodes, c->blocks, c->n_blocks * sizeof(*c->blocks));
	return r < 0 ? fail(w, r) : 0;
}

/* Writes the inode of a directory whose listing was the last one written. */
static int write_dir_inode(struct writer *w, const struct tree_node *dir, uint32_t n_subdirs)
{
	uint32_t xattr;
	int r = add_xattrs(w, dir->inode, &xattr);
	if (r < 0)
		return r;
	/* The root's parent is one beyond the last inode, as mksquashfs has it. */
	uint32_t parent = dir->parent ? dir->parent->inode->number : w->n_inodes + 1;
	CLEANUP(cleanup_inode)
	sqfs_inode_generic_t *out = sqfs_dir_writer_create_inode(w->dirs, 0, xattr, parent);
	if (!out)
		return fail(w, SQFS_ERROR_ALLOC);
	if (out->base.type == SQFS_INODE_DIR) {
		out->data.dir.nlink = n_subdirs + 2;
	} else {
		out->data.dir_ext.nlink = n_subdirs + 2;
		if (sqfs_dir_writer_get_index_size(w->dirs) > DIR_INDEX_BYTES_MAX) {
			out->data.dir_ext.inodex_count = 0;
			out->payload_bytes_used = 0;
		}
	}
	return write_inode(w, dir->inode, out);
}

static int write_listing(struct writer *w, struct tree_node **children, size_t n)
{
	int r = sqfs_dir_writer_begin(w->dirs, 0);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct tree_inode *inode = children[i]->inode;
		r = sqfs_dir_writer_add_entry(w->dirs, children[i]->name, inode->number, inode->ref,
					      (uint16_t)inode->mode);
	}
	if (r == 0)
		r = sqfs_dir_writer_end(w->dirs);
	return r < 0 ? fail(w, r) : 0;
}

/* Writes everything below @dir, then its listing, then its inode. */
static int write_dir(struct writer *w, struct tree_node *dir)
{
	cleanup_free struct tree_node **children = NULL;
	if (tree_sorted_children(dir, &children) < 0)
		return fail(w, SQFS_ERROR_ALLOC);
	uint32_t n_subdirs = 0;
	int r = 0;
	for (size_t i = 0; i < dir->n_children && r == 0; i++) {
		if (!S_ISDIR(children[i]->inode->mode))
			continue;
		n_subdirs++;
		r = write_dir(w, children[i]);
	}
	for (size_t i = 0; i < dir->n_children && r == 0; i++)
		if (!S_ISDIR(children[i]->inode->mode))
			r = write_leaf(w, children[i]->inode);
	if (r == 0)
		r = write_listing(w, children, dir->n_children);
	return r < 0 ? r : write_dir_inode(w, dir, n_subdirs);
}

/* Numbers the inodes below @dir: first its own children, then theirs. */
static int number_inodes(struct writer *w, struct tree_node *dir)
{
	cleanup_free struct tree_node **children = NULL;
	if (tree_sorted_children(dir, &children) < 0)
		return fail(w, SQFS_ERROR_ALLOC);
	for (size_t i = 0; i < dir->n_children; i++) {
		struct tree_inode *inode = children[i]->inode;
		inode->ref = UNWRITTEN;
		if (inode->number == 0)
			inode->number = ++w->n_inodes;
	}
	for (size_t i = 0; i < dir->n_children; i++) {
		if (!S_ISDIR(children[i]->inode->mode))
			continue;
		int r = number_inodes(w, children[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_inodes(struct writer *w)
{
	struct tree_node *root = tree_root(w->tree);
	root->inode->number = ++w->n_inodes;
	int r = number_inodes(w, root);
	if (r == 0)
		r = write_dir(w, root);
	if (r < 0)
		return r;
	sqfs_super_t *super = &w->s->super;
	super->root_inode_ref = root->inode->ref;
	super->inode_count = w->n_inodes;
	r = sqfs_meta_writer_flush(w->inodes);
	if (r == 0)
		r = sqfs_meta_writer_flush(w->listings);
	if (r < 0)
		return fail(w, r);
	super->directory_table_start = w->s->file.size;
	r = sqfs_meta_write_write_to_file(w->listings);
	return r < 0 ? fail(w, r) : 0;
}

static int write_tables(struct writer *w)
{
	struct squash *s = w->s;
	sqfs_file_t *file = &s->file.base;
	const struct tree_inode *root = tree_root(w->tree)->inode;
	int r = sqfs_frag_table_write(s->fragments, file, &s->super, &s->compressor.base);
	if (r == 0)
		r = sqfs_dir_writer_write_export_table(w->dirs, file, &s->compressor.base,
						       root->number, root->ref, &s->super);
	if (r == 0)
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
	return r < 0 ? fail(w, r) : 0;
}

static void writer_deinit(struct writer *w)
{
	sqfs_destroy(w->dirs);
	sqfs_destroy(w->xattrs);
	sqfs_destroy(w->ids);
	sqfs_destroy(w->listings);
	sqfs_destroy(w->inodes);
}

static int writer_init(struct writer *w, struct squash *s)
{
	w->inodes = sqfs_meta_writer_create(&s->file.base, &s->compressor.base, 0);
	w->listings = sqfs_meta_writer_create(&s->file.base, &s->compressor.base,
					      SQFS_META_WRITER_KEEP_IN_MEMORY);
	w->ids = sqfs_id_table_create(0);
	w->xattrs = sqfs_xattr_writer_create(0);
	if (!w->inodes || !w->listings || !w->ids || !w->xattrs)
		return -ENOMEM;
	w->dirs = sqfs_dir_writer_create(w->listings, SQFS_DIR_WRITER_CREATE_EXPORT_TABLE);
	return w->dirs ? 0 : -ENOMEM;
}

int squash_write_tree(struct squash *s, struct tree *t, struct err *e)
{
	CLEANUP(writer_deinit) struct writer w = { .s = s, .tree = t, .e = e };
	if (writer_init(&w, s) < 0)
		return fail(&w, SQFS_ERROR_ALLOC);
	s->super.inode_table_start = s->file.size;
	int r = write_inodes(&w);
	return r < 0 ? r : write_tables(&w);
}
