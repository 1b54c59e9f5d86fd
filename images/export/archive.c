/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one walk over the tree with one buffer for the path. The first name of an
 * inode that has several carries the content; @firsts remembers it, and the others are links to it.
 */
#include "images/export/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "images/render/layer.h"
#include "lib/base/macros.h"

#define CHUNK ((size_t)1024 * 1024) /* bytes of content in memory */

#define TAR_BLOCK ((size_t)64 * 1024) /* bytes that libarchive hands over at a time */

struct archive_out {
	struct archive *tar;
	struct archive_entry *entry;
	struct sink *sink; /* borrowed */
	struct err sink_error;
	const struct content_reader *readers;
	const struct tree_node **firsts; /* by tree_inode.number - 1 */
	size_t n_firsts;
	size_t prefix_len;
	uint64_t bytes_left; /* of ARCHIVE_BYTES_MAX */
	char path[LAYER_PATH_MAX];
	char *chunk;
	char *zeros;
	struct err *e;
};

static la_ssize_t pass_on(struct archive *tar, void *ctx, const void *data, size_t len)
{
	struct archive_out *a = ctx;
	if (sink_write(a->sink, data, len, &a->sink_error) == 0)
		return (la_ssize_t)len;
	archive_set_error(tar, EIO, "%s", a->sink_error.text);
	return -1;
}

static int archive_fail(const struct archive_out *a, const char *path, struct err *e)
{
	if (a->sink_error.code < 0)
		return err_set(e, a->sink_error.code, "%s", a->sink_error.text);
	const char *text = a->tar ? archive_error_string(a->tar) : NULL;
	return err_set(e, -EIO, "cannot write \"%s\" into the archive: %s", path,
		       text ? text : "out of memory");
}

int archive_out_new(struct sink *sink, struct archive_out **ret, struct err *e)
{
	CLEANUP(archive_out_freep) struct archive_out *a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(e, -ENOMEM, "out of memory");
	a->sink = sink;
	a->bytes_left = ARCHIVE_BYTES_MAX;
	a->tar = archive_write_new();
	a->entry = archive_entry_new();
	a->chunk = malloc(CHUNK);
	a->zeros = calloc(1, CHUNK);
	if (!a->tar || !a->entry || !a->chunk || !a->zeros)
		return err_set(e, -ENOMEM, "out of memory");
	/*
	 * Attributes are written once, in the form that Linux programs read. Names are bytes: those
	 * that are not ASCII get an extended header that says so.
	 */
	if (archive_write_set_format_pax_restricted(a->tar) != ARCHIVE_OK ||
	    archive_write_set_format_option(a->tar, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(a->tar, (int)TAR_BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(a->tar, 1) != ARCHIVE_OK ||
	    archive_write_open(a->tar, a, NULL, pass_on, NULL) != ARCHIVE_OK)
		return archive_fail(a, "", e);
	*ret = TAKE_PTR(a);
	return 0;
}

void archive_out_free(struct archive_out *a)
{
	if (!a)
		return;
	archive_entry_free(a->entry);
	archive_write_free(a->tar);
	free(a->firsts);
	free(a->chunk);
	free(a->zeros);
	free(a);
}

/* ARCHIVE_WARN: a name is not in the current character set; its bytes are kept. */
static int write_header(struct archive_out *a, struct err *e)
{
	int r = archive_write_header(a->tar, a->entry);
	return r == ARCHIVE_OK || r == ARCHIVE_WARN
		       ? 0
		       : archive_fail(a, archive_entry_pathname(a->entry), e);
}

static int write_data(struct archive_out *a, const void *data, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		la_ssize_t n = archive_write_data(a->tar, (const char *)data + done, len - done);
		if (n <= 0)
			return archive_fail(a, archive_entry_pathname(a->entry), e);
		done += (size_t)n;
	}
	return 0;
}

int archive_out_file(struct archive_out *a, const char *name, const void *data, size_t len,
		     struct err *e)
{
	archive_entry_clear(a->entry);
	archive_entry_set_pathname(a->entry, name);
	archive_entry_set_filetype(a->entry, AE_IFREG);
	archive_entry_set_perm(a->entry, 0644);
	archive_entry_set_mtime(a->entry, 0, 0);
	archive_entry_set_size(a->entry, (la_int64_t)len);
	int r = write_header(a, e);
	return r < 0 ? r : write_data(a, data, len, e);
}

static int too_long(struct archive_out *a, const char *path)
{
	return err_set(
		a->e, -ENAMETOOLONG,
		"the path of \"%.100s...\" is longer than the %zu bytes that an image may have",
		path, LAYER_PATH_MAX - 1);
}

static int add_xattrs(struct archive_out *a, const struct tree_inode *inode)
{
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x)) {
		if (strchr(x->name, '='))
			return err_set(a->e, -EOPNOTSUPP,
				       "\"%s\" has an extended attribute \"%s\", whose name no tar "
				       "archive can hold",
				       a->path, x->name);
		archive_entry_xattr_add_entry(a->entry, x->name, tree_xattr_value(x), x->size);
	}
	return 0;
}

/* Fills the entry with all but names and what only some types have. */
static int fill_entry(struct archive_out *a, const struct tree_inode *inode)
{
	archive_entry_clear(a->entry);
	archive_entry_set_pathname(a->entry, a->path);
	archive_entry_set_mode(a->entry, inode->mode);
	archive_entry_set_uid(a->entry, tree_uid(inode));
	archive_entry_set_gid(a->entry, tree_gid(inode));
	archive_entry_set_mtime(a->entry, inode->mtime, 0);
	return add_xattrs(a, inode);
}

/* Writes @len bytes of @piece in chunks. */
static int write_piece(struct archive_out *a, const struct content_reader *reader,
		       const struct content_piece *piece)
{
	int r = 0;
	for (uint64_t done = 0; done < piece->len && r == 0;) {
		size_t n = (size_t)MIN(piece->len - done, (uint64_t)CHUNK);
		const char *from = a->zeros;
		if (piece->at != CONTENT_ZEROS) {
			from = a->chunk;
			r = reader->read(reader->ctx, piece, done, a->chunk, n, a->e);
		}
		if (r == 0)
			r = write_data(a, from, n, a->e);
		done += n;
	}
	return r;
}

/* libarchive wants all bytes, and throws those of holes away. */
static int write_content(struct archive_out *a, const struct content_reader *reader,
			 const struct content_map *map, uint64_t size)
{
	uint64_t end = 0;
	int r = 0;
	for (size_t i = 0; i <= map->n && r == 0; i++) {
		struct content_piece hole = { end, (i < map->n ? map->v[i].offset : size) - end,
					      CONTENT_ZEROS };
		r = write_piece(a, reader, &hole);
		if (i == map->n || r < 0)
			break;
		r = write_piece(a, reader, &map->v[i]);
		end = map->v[i].offset + map->v[i].len;
	}
	return r;
}

static void add_sparse(struct archive_out *a, const struct content_map *map, uint64_t size)
{
	if (map->n == 0)
		archive_entry_sparse_add_entry(a->entry, (la_int64_t)size, 0);
	for (size_t i = 0; i < map->n; i++) {
		uint64_t len = map->v[i].len;
		/* One line for pieces that touch, whatever they are. */
		uint64_t offset = map->v[i].offset;
		while (i + 1 < map->n && map->v[i + 1].offset == offset + len)
			len += map->v[++i].len;
		archive_entry_sparse_add_entry(a->entry, (la_int64_t)offset, (la_int64_t)len);
	}
}

/* True if there is a hole in the map. */
static bool is_sparse(const struct content_map *map, uint64_t size)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < map->n; i++)
		sum += map->v[i].len;
	return sum < size;
}

static int write_file(struct archive_out *a, const struct tree_inode *inode)
{
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	uint64_t size = tree_size(inode);
	const struct content_reader *reader = &a->readers[inode->layer];
	if (size > a->bytes_left)
		return err_set(a->e, -EFBIG,
			       "\"%s\": all files together have more than %llu GiB, holes "
			       "included (delete what is not needed)",
			       a->path, (unsigned long long)(ARCHIVE_BYTES_MAX >> 30));
	a->bytes_left -= size;
	int r = reader->map(reader->ctx, inode, &map, a->e);
	if (r < 0)
		return err_context(a->e, "\"%s\"", a->path);
	r = content_map_fill(&map, size, ARCHIVE_HOLE_MIN);
	if (r < 0)
		return err_sys(a->e, r, "\"%s\"", a->path);
	archive_entry_set_size(a->entry, (la_int64_t)size);
	if (is_sparse(&map, size))
		add_sparse(a, &map, size);
	r = write_header(a, a->e);
	if (r == 0)
		r = write_content(a, reader, &map, size);
	return r;
}

/* Remembers the first name of an inode that has others. */
static void note_first(struct archive_out *a, const struct tree_node *node)
{
	struct tree_inode *inode = tree_inode_of(node);
	if (inode->nlink < 2)
		return;
	a->firsts[a->n_firsts++] = node;
	inode->number = (uint32_t)a->n_firsts;
}

static int write_link(struct archive_out *a, const struct tree_inode *inode)
{
	char mem[LAYER_PATH_MAX + sizeof("/...")], target[LAYER_PATH_MAX + sizeof(mem)];
	/* The path was written before, so it fits. */
	const char *path = tree_node_path(a->firsts[inode->number - 1], mem, sizeof(mem));
	snprintf(target, sizeof(target), "%.*s%s", (int)a->prefix_len, a->path, path + 1);
	archive_entry_set_hardlink(a->entry, target);
	return write_header(a, a->e);
}

/* Writes the node whose path is in a->path. */
static int write_node(struct archive_out *a, const struct tree_node *node)
{
	struct tree_inode *inode = tree_inode_of(node);
	bool is_dir = S_ISDIR(inode->mode);
	int r = fill_entry(a, inode);
	if (r < 0)
		return r;
	if (!is_dir && inode->number != 0)
		return write_link(a, inode);
	if (!is_dir)
		note_first(a, node);
	if (S_ISREG(inode->mode))
		return write_file(a, inode);
	if (S_ISLNK(inode->mode)) {
		archive_entry_set_symlink(a->entry, tree_target(inode));
	} else if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) {
		archive_entry_set_rdevmajor(a->entry, tree_major(inode));
		archive_entry_set_rdevminor(a->entry, tree_minor(inode));
	}
	return write_header(a, a->e);
}

/* Writes what is in @dir, whose path, with a slash at its end, has @len bytes. */
static int write_children(struct archive_out *a, struct tree_node *dir, size_t len)
{
	tree_sort(dir);
	for (struct tree_node *n = tree_children(dir); n; n = tree_next(n)) {
		uint16_t mode = tree_inode_of(n)->mode;
		size_t name_len = strlen(n->name), slash = S_ISDIR(mode) ? 1 : 0;
		if (S_ISSOCK(mode))
			continue;
		if (len + name_len + slash >= sizeof(a->path))
			return too_long(a, a->path);
		memcpy(a->path + len, n->name, name_len + 1);
		int r = write_node(a, n);
		if (r == 0 && S_ISDIR(mode)) {
			memcpy(a->path + len + name_len, "/", 2);
			r = write_children(a, n, len + name_len + 1);
		}
		a->path[len] = '\0';
		if (r < 0)
			return r;
	}
	return 0;
}

int archive_out_tree(struct archive_out *a, const struct tree *t, const char *prefix,
		     const struct content_reader readers[CONTENT_COUNT_], struct err *e)
{
	a->readers = readers;
	a->e = e;
	a->prefix_len = strlen(prefix);
	if (a->prefix_len >= sizeof(a->path) - 2)
		return too_long(a, prefix);
	free(a->firsts);
	a->n_firsts = 0;
	a->firsts = calloc(tree_count(t), sizeof(struct tree_node *));
	if (!a->firsts)
		return err_set(e, -ENOMEM, "out of memory");
	memcpy(a->path, *prefix ? prefix : "./", (*prefix ? a->prefix_len : 2) + 1);
	int r = write_node(a, tree_root(t));
	a->path[a->prefix_len] = '\0';
	if (r == 0)
		r = write_children(a, tree_root(t), a->prefix_len);
	a->e = NULL;
	return r;
}

int archive_out_finish(struct archive_out *a, struct err *e)
{
	return archive_write_close(a->tar) == ARCHIVE_OK ? 0 : archive_fail(a, "", e);
}
