/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a listing is a series of runs, each a header and up to 256 entries whose
 * inodes are in one metadata block of the inode table. The index of a directory (the place and
 * first name of each run) is needed by its inode, and only there.
 */
#include <endian.h>
#include <sqfs/dir.h>
#include <sqfs/inode.h>
#include <string.h>

#include "images/render/squash_tree.h"

#define META_BLOCK ((size_t)SQFS_META_BLOCK_SIZE)

static uint16_t type_of(uint16_t mode)
{
	static const uint16_t types[] = {
		[S_IFSOCK >> 12] = SQFS_INODE_SOCKET, [S_IFIFO >> 12] = SQFS_INODE_FIFO,
		[S_IFLNK >> 12] = SQFS_INODE_SLINK,   [S_IFBLK >> 12] = SQFS_INODE_BDEV,
		[S_IFCHR >> 12] = SQFS_INODE_CDEV,    [S_IFDIR >> 12] = SQFS_INODE_DIR,
		[S_IFREG >> 12] = SQFS_INODE_FILE,
	};
	return types[mode >> 12];
}

/* How many entries from @first on fit into one run that begins at @offset of a metadata block. */
static size_t run_length(const struct tree_node *first, size_t offset)
{
	const struct tree_inode *head = tree_inode_of(first);
	size_t size = (offset + sizeof(sqfs_dir_header_t)) % META_BLOCK, n = 0;
	for (const struct tree_node *c = first; c && n < SQFS_MAX_DIR_ENT; c = tree_next(c), n++) {
		const struct tree_inode *inode = tree_inode_of(c);
		int64_t distance = (int64_t)inode->number - head->number;
		size += sizeof(sqfs_dir_entry_t) + strlen(c->name);
		if (inode->place / META_BLOCK != head->place / META_BLOCK || distance > INT16_MAX ||
		    distance < -INT16_MAX || (n > 0 && size > META_BLOCK))
			break;
	}
	return n;
}

/* Notes a run in the index, unless that is full. */
static void note_run(struct squash_listing *l, const char *name, uint64_t block)
{
	size_t len = strlen(name), size = sizeof(sqfs_dir_index_t) + len;
	l->index_wanted += size;
	if (!l->index || l->index_wanted > SQUASH_DIR_INDEX_MAX)
		return;
	const sqfs_dir_index_t entry = {
		.index = (sqfs_u32)l->size,
		.start_block = (sqfs_u32)block,
		.size = (sqfs_u32)len - 1,
	};
	memcpy(l->index + l->index_used, &entry, sizeof(entry));
	memcpy(l->index + l->index_used + sizeof(entry), name, len);
	l->index_used += size;
	l->n_index++;
}

static int squash_dir_put(struct squash_listing *l, sqfs_meta_writer_t *m, const void *data,
			  size_t len)
{
	l->size += len;
	return sqfs_meta_writer_append(m, data, len);
}

static int write_entry(struct squash_listing *l, sqfs_meta_writer_t *m, const struct tree_node *c,
		       uint32_t first)
{
	const struct tree_inode *inode = tree_inode_of(c);
	size_t len = strlen(c->name);
	const sqfs_dir_entry_t entry = {
		.offset = htole16((uint16_t)(inode->place % META_BLOCK)),
		.inode_diff = (sqfs_s16)htole16((uint16_t)(inode->number - first)),
		.type = htole16(type_of(inode->mode)),
		.size = htole16((uint16_t)(len - 1)),
	};
	int r = squash_dir_put(l, m, &entry, sizeof(entry));
	return r < 0 ? r : squash_dir_put(l, m, c->name, len);
}

int squash_write_listing(struct squash_listing *l, sqfs_meta_writer_t *m,
			 const uint32_t *block_starts, const struct tree_node *dir)
{
	sqfs_meta_writer_get_position(m, &l->block, &l->offset);
	l->size = l->index_used = l->index_wanted = l->n_index = l->n_subdirs = 0;
	for (const struct tree_node *c = tree_children(dir); c;) {
		const struct tree_inode *head = tree_inode_of(c);
		sqfs_u64 block;
		sqfs_u32 offset;
		sqfs_meta_writer_get_position(m, &block, &offset);
		size_t n = run_length(c, offset);
		const sqfs_dir_header_t header = {
			.count = htole32((uint32_t)n - 1),
			.start_block = htole32(block_starts[head->place / META_BLOCK]),
			.inode_number = htole32(head->number),
		};
		note_run(l, c->name, block);
		int r = squash_dir_put(l, m, &header, sizeof(header));
		for (; n > 0 && r == 0; n--, c = tree_next(c)) {
			l->n_subdirs += S_ISDIR(tree_inode_of(c)->mode) ? 1 : 0;
			r = write_entry(l, m, c, head->number);
		}
		if (r < 0)
			return r;
	}
	return 0;
}
