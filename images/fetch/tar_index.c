/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is a row of strings, four for each entry: offset, size, name, and where it leads if it is
 * a link, else "".
 */
#include "images/fetch/tar_index.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

#define READ_CHUNK ((size_t)16 * 1024) /* for headers; contents are skipped */

struct scan {
	const struct span *tar;
	uint64_t size, at;
	char chunk[READ_CHUNK];
};

/* libarchive's read callback. */
static la_ssize_t read_chunk(struct archive *a, void *ctx, const void **ret)
{
	struct scan *s = ctx;
	size_t len = (size_t)MIN(s->size - s->at, (uint64_t)READ_CHUNK);
	int r = span_read(s->tar, s->chunk, len, s->at);
	if (r < 0) {
		archive_set_error(a, -r, "%s", strerror(-r));
		return -1;
	}
	s->at += len;
	*ret = s->chunk;
	return (la_ssize_t)len;
}

/* libarchive's skip callback. */
static la_int64_t skip_bytes(struct archive *a, void *ctx, la_int64_t n)
{
	struct scan *s = ctx;
	(void)a;
	n = (la_int64_t)MIN((uint64_t)n, s->size - s->at);
	s->at += (uint64_t)n;
	return n;
}

static void cleanup_archive(struct archive **a)
{
	archive_read_free(*a);
}

/* A name of the archive without "./" in front. */
static const char *normal_name(const char *name)
{
	while (str_starts(name, "./"))
		name += 2;
	return name;
}

static int tar_index_add(struct buf *index, uint64_t offset, uint64_t size, const char *name,
			 const char *link)
{
	name = normal_name(name);
	link = normal_name(link);
	if (strlen(name) > TAR_INDEX_NAME_MAX || strlen(link) > TAR_INDEX_NAME_MAX)
		return 0;
	return buf_printf(index, "%" PRIu64 "%c%" PRIu64 "%c%s%c%s%c", offset, 0, size, 0, name, 0,
			  link, 0);
}

/* Takes one member, whose content begins at @offset. */
static int tar_index_member(const struct scan *s, struct archive_entry *entry, uint64_t offset,
			    struct buf *index, size_t *n_entries, struct err *e)
{
	const char *name = archive_entry_pathname(entry), *link = archive_entry_hardlink(entry);
	uint64_t size = (uint64_t)MAX(archive_entry_size(entry), 0);
	if (!link && archive_entry_filetype(entry) == AE_IFLNK)
		link = archive_entry_symlink(entry);
	bool is_file = !link && archive_entry_filetype(entry) == AE_IFREG;
	if (is_file && (offset > s->size || size > s->size - offset))
		return err_set(e, -EBADMSG,
			       "the archive is cut off: a member of %" PRIu64
			       " bytes at byte %" PRIu64 " of %" PRIu64 " (fetch it again)",
			       size, offset, s->size);
	if (!name || (!link && !is_file) || archive_entry_sparse_count(entry) > 0)
		return 0;
	if ((*n_entries)++ == TAR_INDEX_ENTRIES_MAX)
		return err_set(e, -E2BIG, "the archive has more than %zu members",
			       TAR_INDEX_ENTRIES_MAX);
	return tar_index_add(index, offset, size, name, link ? link : "") < 0
		       ? err_set(e, -ENOMEM, "out of memory")
		       : 0;
}

/* What libarchive says about the header number @n. */
static int scan_error(struct archive *a, size_t n, struct err *e)
{
	const char *text = archive_error_string(a);
	if (archive_errno(a) == ENOMEM)
		return err_set(e, -ENOMEM, "out of memory");
	if (n == 0)
		return err_set(e, -EINVAL,
			       "neither an OCI layout nor a docker archive (give a directory with "
			       "index.json, or a tar of one, or the output of \"docker save\")");
	return err_set(e, -EBADMSG, "damaged tar, header %zu: %s (fetch it again)", n + 1,
		       text ? text : "it makes no sense");
}

static int scan_all(struct scan *s, struct archive *a, struct buf *index, struct err *e)
{
	struct archive_entry *entry = NULL;
	size_t n_entries = 0;
	for (size_t n = 0;; n++) {
		int r = archive_read_next_header(a, &entry);
		if (r == ARCHIVE_EOF)
			return 0;
		/*
		 * ARCHIVE_WARN: a name that is not in the current character set, whose bytes are
		 * kept.
		 */
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return scan_error(a, n, e);
		if (n == TAR_INDEX_HEADERS_MAX)
			return err_set(e, -E2BIG, "the archive has more than %zu tar headers",
				       TAR_INDEX_HEADERS_MAX);
		r = tar_index_member(s, entry, (uint64_t)archive_filter_bytes(a, 0), index,
				     &n_entries, e);
		if (r < 0)
			return r;
	}
}

int tar_index_scan(const struct span *tar, struct buf *index, struct err *e)
{
	cleanup_free struct scan *s = malloc(sizeof(*s));
	CLEANUP(cleanup_archive) struct archive *a = archive_read_new();
	if (!s || !a)
		return err_set(e, -ENOMEM, "out of memory");
	*s = (struct scan){ .tar = tar, .size = MIN(tar->size, (uint64_t)INT64_MAX) };
	archive_read_support_format_tar(a);
	archive_read_set_skip_callback(a, skip_bytes);
	archive_read_set_read_callback(a, read_chunk);
	archive_read_set_callback_data(a, s);
	return archive_read_open1(a) == ARCHIVE_OK ? scan_all(s, a, index, e) : scan_error(a, 0, e);
}

/* One entry of a table. */
struct entry {
	uint64_t offset, size;
	const char *name, *link;
};

/* Reads the entry at *pos, which moves on. False at the end, or where the table makes no sense. */
static bool next_entry(const struct buf *index, size_t *pos, struct entry *ret)
{
	const char *text[4];
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		size_t left = buf_len(index) - *pos;
		text[i] = left > 0 ? (const char *)buf_data(index) + *pos : "";
		if (left == 0 || !memchr(text[i], '\0', left))
			return false;
		*pos += strlen(text[i]) + 1;
	}
	ret->name = text[2];
	ret->link = text[3];
	return num_parse_u64(text[0], INT64_MAX, &ret->offset) == 0 &&
	       num_parse_u64(text[1], INT64_MAX, &ret->size) == 0;
}

static bool find_entry(const struct buf *index, const char *name, struct entry *ret)
{
	size_t pos = 0;
	while (next_entry(index, &pos, ret))
		if (strcmp(ret->name, name) == 0)
			return true;
	return false;
}

/* Where a link leads: hard links are named from the top, symbolic ones from their directory. */
static bool tar_index_follow(const struct buf *index, const struct entry *from, struct entry *ret)
{
	char path[2 * TAR_INDEX_NAME_MAX + 2] = "";
	const char *link = from->link, *slash = strrchr(from->name, '/');
	size_t dir = slash ? (size_t)(slash - from->name) : 0;
	if (find_entry(index, link, ret))
		return true;
	if (dir > TAR_INDEX_NAME_MAX || strlen(link) > TAR_INDEX_NAME_MAX)
		return false;
	memcpy(path, from->name, dir);
	while (str_starts(link, "../") && dir > 0) {
		while (dir > 0 && path[--dir] != '/')
			;
		link += 3;
	}
	if (dir > 0)
		path[dir++] = '/';
	str_copy(path + dir, sizeof(path) - dir, link);
	return find_entry(index, path, ret);
}

int tar_index_find(const struct buf *index, uint64_t size, const char *name, uint64_t *ret_offset,
		   uint64_t *ret_size)
{
	struct entry entry, target;
	if (!find_entry(index, normal_name(name), &entry))
		return -ENOENT;
	if (*entry.link) {
		if (!tar_index_follow(index, &entry, &target) || *target.link)
			return -ENOENT;
		entry = target;
	}
	if (entry.offset > size || entry.size > size - entry.offset)
		return -ENOENT;
	*ret_offset = entry.offset;
	*ret_size = entry.size;
	return 0;
}
