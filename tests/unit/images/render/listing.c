/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/render/listing.h"

#include <sqfs/compressor.h>
#include <sqfs/data_reader.h>
#include <sqfs/dir_reader.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/super.h>
#include <sqfs/xattr.h>
#include <sqfs/xattr_reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/buf.h"
#include "tests/support/cmocka.h"

#define TEXT_SHOWN_MAX 64
#define LISTING_MAX    ((size_t)64 * 1024 * 1024)

struct reader {
	sqfs_file_t *file;
	sqfs_super_t super;
	sqfs_compressor_t *cmp;
	sqfs_id_table_t *ids;
	sqfs_dir_reader_t *dirs;
	sqfs_data_reader_t *data;
	sqfs_xattr_reader_t *xattrs;
	struct buf out;
};

static void reader_open(struct reader *r, int fd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	buf_init(&r->out, LISTING_MAX);
	r->file = sqfs_open_file(path, SQFS_FILE_OPEN_READ_ONLY);
	assert_non_null(r->file);
	assert_int_equal(sqfs_super_read(&r->super, r->file), 0);
	sqfs_compressor_config_t cfg;
	assert_int_equal(sqfs_compressor_config_init(&cfg, (SQFS_COMPRESSOR)r->super.compression_id,
						     r->super.block_size,
						     SQFS_COMP_FLAG_UNCOMPRESS),
			 0);
	assert_int_equal(sqfs_compressor_create(&cfg, &r->cmp), 0);
	r->ids = sqfs_id_table_create(0);
	assert_int_equal(sqfs_id_table_read(r->ids, r->file, &r->super, r->cmp), 0);
	r->dirs = sqfs_dir_reader_create(&r->super, r->cmp, r->file, 0);
	assert_non_null(r->dirs);
	r->data = sqfs_data_reader_create(r->file, r->super.block_size, r->cmp, 0);
	assert_int_equal(sqfs_data_reader_load_fragment_table(r->data, &r->super), 0);
	r->xattrs = sqfs_xattr_reader_create(0);
	assert_int_equal(sqfs_xattr_reader_load(r->xattrs, &r->super, r->file, r->cmp), 0);
}

static void reader_close(struct reader *r)
{
	sqfs_destroy(r->xattrs);
	sqfs_destroy(r->data);
	sqfs_destroy(r->dirs);
	sqfs_destroy(r->ids);
	sqfs_destroy(r->cmp);
	sqfs_destroy(r->file);
}

static void put_bytes(struct reader *r, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++) {
		if (p[i] > 0x20 && p[i] < 0x7f && p[i] != '%')
			assert_int_equal(buf_printf(&r->out, "%c", p[i]), 0);
		else
			assert_int_equal(buf_printf(&r->out, "%%%02x", p[i]), 0);
	}
}

static char *read_content(struct reader *r, const sqfs_inode_generic_t *inode, size_t *ret_len)
{
	sqfs_u64 size;
	assert_int_equal(sqfs_inode_get_file_size(inode, &size), 0);
	char *mem = malloc((size_t)size + 1);
	assert_non_null(mem);
	size_t done = 0;
	while (done < size) {
		sqfs_u32 want = size - done > 1 << 20 ? 1 << 20 : (sqfs_u32)(size - done);
		sqfs_s32 n = sqfs_data_reader_read(r->data, inode, done, mem + done, want);
		assert_true(n > 0);
		done += (size_t)n;
	}
	*ret_len = done;
	return mem;
}

static void put_content(struct reader *r, const sqfs_inode_generic_t *inode)
{
	unsigned int mode = inode->base.mode & S_IFMT;
	if (mode == S_IFREG) {
		size_t len;
		char *text = read_content(r, inode, &len);
		if (len > 0 && len <= TEXT_SHOWN_MAX) {
			assert_int_equal(buf_puts(&r->out, " ="), 0);
			put_bytes(r, text, len);
		} else {
			assert_int_equal(buf_printf(&r->out, " size=%zu", len), 0);
		}
		free(text);
	} else if (mode == S_IFLNK) {
		assert_int_equal(buf_puts(&r->out, " ->"), 0);
		put_bytes(r, inode->extra, inode->data.slink.target_size);
	} else if (mode == S_IFCHR || mode == S_IFBLK) {
		unsigned int n = inode->data.dev.devno;
		assert_int_equal(buf_printf(&r->out, " %u,%u", n >> 8 & 0xfff,
					    (n & 0xff) | (n >> 12 & 0xfff00)),
				 0);
	}
}

static void put_xattrs(struct reader *r, const sqfs_inode_generic_t *inode)
{
	sqfs_u32 index;
	if (sqfs_inode_get_xattr_index(inode, &index) != 0 || index == 0xFFFFFFFF)
		return;
	sqfs_xattr_id_t desc;
	assert_int_equal(sqfs_xattr_reader_get_desc(r->xattrs, index, &desc), 0);
	assert_int_equal(sqfs_xattr_reader_seek_kv(r->xattrs, &desc), 0);
	for (unsigned int i = 0; i < desc.count; i++) {
		sqfs_xattr_entry_t *key;
		sqfs_xattr_value_t *value;
		assert_int_equal(sqfs_xattr_reader_read_key(r->xattrs, &key), 0);
		assert_int_equal(sqfs_xattr_reader_read_value(r->xattrs, key, &value), 0);
		assert_int_equal(buf_printf(&r->out, " %s=", key->key), 0);
		put_bytes(r, value->value, value->size);
		sqfs_free(key);
		sqfs_free(value);
	}
}

/* All inode types but plain directories have the link count first or in file_ext. */
static unsigned int link_count(const sqfs_inode_generic_t *inode)
{
	if (inode->base.type == SQFS_INODE_FILE)
		return 1;
	if (inode->base.type == SQFS_INODE_EXT_FILE)
		return inode->data.file_ext.nlink;
	if (inode->base.type == SQFS_INODE_DIR)
		return inode->data.dir.nlink;
	return inode->data.dev.nlink;
}

static void put_node(struct reader *r, const sqfs_tree_node_t *n, const char *parent)
{
	static const char letters[] = "?pc?d?b?f?l?s";
	const sqfs_inode_generic_t *inode = n->inode;
	char path[8192];
	snprintf(path, sizeof(path), "%s%s%s", parent, *parent ? "/" : "", (const char *)n->name);
	assert_int_equal(buf_printf(&r->out, "%c %04o %u:%u %u %u ",
				    letters[inode->base.mode >> 12], inode->base.mode & 07777,
				    n->uid, n->gid, inode->base.mod_time, link_count(inode)),
			 0);
	put_bytes(r, *path ? path : "/", *path ? strlen(path) : 1);
	put_content(r, inode);
	put_xattrs(r, inode);
	assert_int_equal(buf_puts(&r->out, "\n"), 0);
	for (const sqfs_tree_node_t *c = n->children; c; c = c->next)
		put_node(r, c, path);
}

char *listing_of(int fd)
{
	struct reader r;
	reader_open(&r, fd);
	sqfs_tree_node_t *root = NULL;
	assert_int_equal(sqfs_dir_reader_get_full_hierarchy(r.dirs, r.ids, NULL, 0, &root), 0);
	put_node(&r, root, "");
	sqfs_dir_tree_destroy(root);
	reader_close(&r);
	char *text = buf_take_string(&r.out);
	assert_non_null(text);
	return text;
}

char *listing_content(int fd, const char *path, size_t *ret_len)
{
	struct reader r;
	reader_open(&r, fd);
	sqfs_inode_generic_t *inode = NULL;
	assert_int_equal(sqfs_dir_reader_find_by_path(r.dirs, NULL, path, &inode), 0);
	char *text = read_content(&r, inode, ret_len);
	sqfs_free(inode);
	reader_close(&r);
	return text;
}
