/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: libarchive compresses one "raw" member, which is nothing but its compression
 * filter, and hands the result to store(), which hashes and writes it.
 */
#include "images/export/sink.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define SINK_BLOCK ((size_t)256 * 1024) /* compressed bytes in one write(2) */

struct sink {
	int fd; /* borrowed */
	uint64_t offset;
	struct archive *raw; /* NULL: not compressed */
	struct hasher plain;
	struct hasher stored;
	struct sink_sums sums;
	struct err error; /* of store(), which libarchive called */
};

int sink_write_at(int fd, uint64_t offset, const void *data, size_t len, struct err *e)
{
	int r = fd_write_at(fd, data, len, offset);
	if (r == -ENOSPC || r == -EDQUOT)
		return err_set(e, r,
			       "no space left for the archive (free some or write it elsewhere)");
	return r < 0 ? err_sys(e, r, "cannot write the archive") : 0;
}

static int store(struct sink *s, const void *data, size_t len, struct err *e)
{
	int r = sink_write_at(s->fd, s->offset + s->sums.stored_size, data, len, e);
	if (r < 0)
		return r;
	hasher_update(&s->stored, data, len);
	s->sums.stored_size += len;
	return 0;
}

static la_ssize_t store_compressed(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct sink *s = ctx;
	if (store(s, data, len, &s->error) == 0)
		return (la_ssize_t)len;
	archive_set_error(a, EIO, "%s", s->error.text);
	return -1;
}

static int raw_fail(const struct sink *s, struct err *e)
{
	if (s->error.code < 0)
		return err_set(e, s->error.code, "%s", s->error.text);
	const char *text = archive_error_string(s->raw);
	return err_set(e, -EIO, "cannot compress: %s", text ? text : "out of memory");
}

static int start_gzip(struct sink *s)
{
	struct archive_entry *entry = archive_entry_new();
	s->raw = archive_write_new();
	if (!entry || !s->raw) {
		archive_entry_free(entry);
		return -ENOMEM;
	}
	archive_entry_set_filetype(entry, AE_IFREG);
	bool ok =
		archive_write_set_format_raw(s->raw) == ARCHIVE_OK &&
		archive_write_add_filter_gzip(s->raw) == ARCHIVE_OK &&
		archive_write_set_filter_option(s->raw, "gzip", "timestamp", NULL) == ARCHIVE_OK &&
		archive_write_set_bytes_per_block(s->raw, (int)SINK_BLOCK) == ARCHIVE_OK &&
		archive_write_set_bytes_in_last_block(s->raw, 1) == ARCHIVE_OK &&
		archive_write_open(s->raw, s, NULL, store_compressed, NULL) == ARCHIVE_OK &&
		archive_write_header(s->raw, entry) == ARCHIVE_OK;
	archive_entry_free(entry);
	return ok ? 0 : -EIO;
}

int sink_new(int fd, uint64_t offset, bool gzip, struct sink **ret, struct err *e)
{
	CLEANUP(sink_freep) struct sink *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->fd = fd;
	s->offset = offset;
	hasher_init(&s->plain);
	hasher_init(&s->stored);
	if (gzip) {
		int r = start_gzip(s);
		if (r < 0)
			return r == -ENOMEM ? err_set(e, r, "out of memory") : raw_fail(s, e);
	}
	*ret = TAKE_PTR(s);
	return 0;
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	archive_write_free(s->raw);
	free(s);
}

int sink_write(struct sink *s, const void *data, size_t len, struct err *e)
{
	hasher_update(&s->plain, data, len);
	s->sums.plain_size += len;
	if (!s->raw)
		return store(s, data, len, e);
	for (size_t done = 0; done < len;) {
		la_ssize_t n = archive_write_data(s->raw, (const char *)data + done, len - done);
		if (n <= 0)
			return raw_fail(s, e);
		done += (size_t)n;
	}
	return 0;
}

int sink_finish(struct sink *s, struct sink_sums *ret, struct err *e)
{
	if (s->raw && archive_write_close(s->raw) != ARCHIVE_OK)
		return raw_fail(s, e);
	hasher_finish(&s->plain, &s->sums.plain);
	hasher_finish(&s->stored, &s->sums.stored);
	*ret = s->sums;
	return 0;
}
