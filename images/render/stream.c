/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the blob is read in chunks, each chunk is hashed as it is read. A compressed
 * blob goes through libarchive as a single "raw" member, which is nothing but its decompression
 * filter. Uncompressed bytes are hashed and counted as they are yielded; for a plain blob both
 * digests are the same and computed once. After an error the stream yields nothing more.
 */
#include "images/render/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/fd.h"

#define ZSTD_MAGIC         "\x28\xb5\x2f\xfd"
#define SKIPPABLE_HEAD_LEN ((size_t)8) /* magic number and length */

struct stream {
	struct span span; /* borrowed descriptor */
	enum stream_compression compression;
	struct archive *raw; /* NULL if plain */
	bool empty;          /* compressed nothing */
	uint64_t pos;        /* bytes read from the blob */
	uint64_t bytes;      /* uncompressed bytes yielded */
	uint64_t bytes_max;
	int failed; /* -errno of the first failure */
	struct err read_err;
	struct hasher blob_hash;
	struct hasher content_hash;
	char chunk[STREAM_CHUNK_MAX];
};

/* 0x184D2A50 to 0x184D2A5F: a frame of zstd without content (RFC 8878, 3.1.2). */
static bool is_skippable(const unsigned char *magic)
{
	return (magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0;
}

enum stream_compression stream_detect(const unsigned char magic[STREAM_MAGIC_LEN])
{
	static const struct {
		enum stream_compression type;
		size_t len;
		unsigned char bytes[STREAM_MAGIC_LEN];
	} known[] = {
		{ STREAM_GZIP, 3, { 0x1f, 0x8b, 0x08 } },
		{ STREAM_ZSTD, 4, { 0x28, 0xb5, 0x2f, 0xfd } },
		{ STREAM_XZ, 6, { 0xfd, '7', 'z', 'X', 'Z', 0x00 } },
		{ STREAM_BZIP2, 3, { 'B', 'Z', 'h' } },
	};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (memcmp(magic, known[i].bytes, known[i].len) == 0)
			return known[i].type;
	return is_skippable(magic) ? STREAM_ZSTD : STREAM_PLAIN;
}

int stream_detect_span(const struct span *span, enum stream_compression *ret)
{
	unsigned char magic[STREAM_MAGIC_LEN] = { 0 };
	int r = span_read(span, magic, (size_t)MIN(span->size, (uint64_t)sizeof(magic)), 0);
	if (r == 0)
		*ret = stream_detect(magic);
	return r;
}

static uint64_t little_endian(const unsigned char *p, size_t len)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++)
		n |= (uint64_t)p[i] << (8 * i);
	return n;
}

uint64_t stream_zstd_window(const unsigned char *head, size_t len)
{
	static const size_t id_sizes[] = { 0, 1, 2, 4 }, content_sizes[] = { 1, 2, 4, 8 };
	if (len < 6 || memcmp(head, ZSTD_MAGIC, 4) != 0)
		return 0;
	unsigned int flags = head[4];
	if (!(flags & 0x20)) { /* not a single segment: a window descriptor follows */
		uint64_t base = UINT64_C(1) << (10 + (head[5] >> 3));
		return base + base / 8 * (head[5] & 7);
	}
	size_t at = 5 + id_sizes[flags & 3], size = content_sizes[flags >> 6];
	return at + size <= len ? little_endian(head + at, size) + (size == 2 ? 256 : 0) : 0;
}

/* Reads and hashes the next chunk of the blob; *ret_len is 0 at its end. */
static int read_chunk(struct stream *s, size_t *ret_len, struct err *e)
{
	uint64_t left = s->span.size - s->pos;
	size_t len = left < sizeof(s->chunk) ? (size_t)left : sizeof(s->chunk);
	int r = span_read(&s->span, s->chunk, len, s->pos);
	if (r == -ENODATA)
		return err_set(e, r, "the file became shorter while it was read");
	if (r < 0)
		return err_sys(e, r, "cannot read");
	hasher_update(&s->blob_hash, s->chunk, len);
	s->pos += len;
	*ret_len = len;
	return 0;
}

/* libarchive's read callback. */
static la_ssize_t raw_read(struct archive *a, void *ctx, const void **ret)
{
	struct stream *s = ctx;
	size_t len = 0;
	int r = read_chunk(s, &len, &s->read_err);
	if (r < 0) {
		archive_set_error(a, -r, "%s", s->read_err.text);
		return -1;
	}
	*ret = s->chunk;
	return (la_ssize_t)len;
}

static int window_too_large(struct err *e)
{
	return err_set(e, -EOPNOTSUPP,
		       "compressed with a zstd window of more than %llu MiB (compress it without "
		       "--long, or with --long=27)",
		       (unsigned long long)(STREAM_WINDOW_MAX >> 20));
}

/* The message of libarchive @a, or of the read error that caused it. */
static int raw_error(struct stream *s, struct err *e)
{
	if (s->read_err.code)
		return err_set(e, s->read_err.code, "%s", s->read_err.text);
	const char *text = archive_error_string(s->raw);
	if (archive_errno(s->raw) == ENOMEM)
		return err_set(e, -ENOMEM,
			       "out of memory while decompressing (compress it with a smaller "
			       "window or dictionary)");
	/* libzstd's words about a frame behind the first, whose maximum is the same. */
	if (s->compression == STREAM_ZSTD && text && strstr(text, "requires too much memory"))
		return window_too_large(e);
	return err_set(e, -EBADMSG, "damaged compressed data: %s", text ? text : "unknown error");
}

static int open_raw(struct stream *s, struct err *e)
{
	static const int codes[] = {
		[STREAM_GZIP] = ARCHIVE_FILTER_GZIP,
		[STREAM_ZSTD] = ARCHIVE_FILTER_ZSTD,
		[STREAM_XZ] = ARCHIVE_FILTER_XZ,
		[STREAM_BZIP2] = ARCHIVE_FILTER_BZIP2,
	};
	s->raw = archive_read_new();
	if (!s->raw)
		return err_set(e, -ENOMEM, "out of memory");
	/*
	 * Exactly this filter: with archive_read_support_filter_gzip() what comes out of it would
	 * be decompressed again and again if it is compressed, up to 25 times, and nobody counts
	 * the bytes in between.
	 */
	int r = archive_read_append_filter(s->raw, codes[s->compression]);
	/* ARCHIVE_WARN: libarchive lacks the library and would start a program. */
	if (r != ARCHIVE_OK)
		return err_set(e, -EOPNOTSUPP, "this build cannot decompress it: %s",
			       archive_error_string(s->raw));
	archive_read_support_format_raw(s->raw);
	archive_read_support_format_empty(s->raw);
	/* An error of the first bytes counts as an empty file, but leaves its message. */
	if (archive_read_open(s->raw, s, NULL, raw_read, NULL) != ARCHIVE_OK ||
	    archive_errno(s->raw) != 0)
		return raw_error(s, e);
	struct archive_entry *entry;
	r = archive_read_next_header(s->raw, &entry);
	if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
		return raw_error(s, e);
	/* A file that ends within the filter's header counts as empty, too. */
	if (r == ARCHIVE_EOF && archive_filter_bytes(s->raw, -1) == 0)
		return err_set(e, -EBADMSG, "damaged compressed data: the header is incomplete");
	s->empty = r == ARCHIVE_EOF;
	return 0;
}

/* Finds the first frame that is not skippable; if there is none, *ret is the end of the blob. */
static int find_frame(const struct span *span, uint64_t *ret, struct err *e)
{
	uint64_t at = 0;
	for (size_t i = 0; i <= STREAM_SKIPPABLE_MAX; i++) {
		unsigned char head[SKIPPABLE_HEAD_LEN];
		*ret = at;
		if (span->size - at < sizeof(head))
			return 0;
		int r = span_read(span, head, sizeof(head), at);
		if (r < 0)
			return err_sys(e, r, "cannot read");
		if (!is_skippable(head))
			return 0;
		at += MIN(sizeof(head) + little_endian(head + 4, 4), span->size - at);
	}
	return err_set(e, -EBADMSG,
		       "it begins with more than %zu zstd frames without content (compress it "
		       "again)",
		       STREAM_SKIPPABLE_MAX);
}

/*
 * Refuses a window that libzstd would refuse, in words that help. Only of the first frame with
 * content: what the others want is found when they are reached.
 */
static int check_window(const struct span *span, struct err *e)
{
	unsigned char head[STREAM_HEAD_LEN];
	uint64_t at = 0;
	int r = find_frame(span, &at, e);
	if (r < 0)
		return r;
	size_t len = (size_t)MIN(span->size - at, (uint64_t)sizeof(head));
	r = span_read(span, head, len, at);
	if (r < 0)
		return err_sys(e, r, "cannot read");
	return stream_zstd_window(head, len) > STREAM_WINDOW_MAX ? window_too_large(e) : 0;
}

/* Decides from the first bytes whether it is something to read. */
static int check_head(struct stream *s, bool all, struct err *e)
{
	int r = stream_detect_span(&s->span, &s->compression);
	if (r < 0)
		return err_sys(e, r, "cannot read");
	if (!all && (s->compression == STREAM_XZ || s->compression == STREAM_BZIP2))
		return err_set(e, -EOPNOTSUPP,
			       "compressed with %s, which layers must not be (they are tar, plain "
			       "or with gzip or zstd)",
			       s->compression == STREAM_XZ ? "xz" : "bzip2");
	return s->compression == STREAM_ZSTD ? check_window(&s->span, e) : 0;
}

int stream_new(const struct span *span, bool all, uint64_t bytes_max, struct stream **ret,
	       struct err *e)
{
	CLEANUP(stream_freep) struct stream *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->span = *span;
	s->bytes_max = bytes_max;
	hasher_init(&s->blob_hash);
	hasher_init(&s->content_hash);
	int r = check_head(s, all, e);
	if (r == 0 && s->compression != STREAM_PLAIN)
		r = open_raw(s, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	archive_read_free(s->raw);
	free(s);
}

/* The next uncompressed bytes, not yet accounted for. */
static int next_bytes(struct stream *s, const void **ret, size_t *ret_len, struct err *e)
{
	*ret_len = 0;
	if (!s->raw) {
		int r = read_chunk(s, ret_len, e);
		*ret = s->chunk;
		return r == 0 && *ret_len == 0 ? STREAM_END : r;
	}
	if (s->empty)
		return STREAM_END;
	la_int64_t offset;
	do {
		*ret_len = 0;
		int r = archive_read_data_block(s->raw, ret, ret_len, &offset);
		if (r == ARCHIVE_EOF)
			return STREAM_END;
		if (r != ARCHIVE_OK)
			return raw_error(s, e);
	} while (*ret_len == 0);
	return 0;
}

int stream_next(struct stream *s, const void **ret, size_t *ret_len, struct err *e)
{
	if (s->failed)
		return err_set(e, s->failed, "an earlier part of it could not be read");
	int r = next_bytes(s, ret, ret_len, e);
	if (r == 0 && *ret_len > s->bytes_max - s->bytes)
		r = err_set(e, -EFBIG,
			    "more than %llu bytes when decompressed (if that is intended, raise "
			    "HUSK_IMAGE_BYTES_MAX)",
			    (unsigned long long)s->bytes_max);
	if (r < 0)
		s->failed = r;
	if (r != 0)
		return r;
	s->bytes += *ret_len;
	if (s->raw)
		hasher_update(&s->content_hash, *ret, *ret_len);
	return 0;
}

uint64_t stream_bytes(const struct stream *s)
{
	return s->bytes;
}

int stream_drain(struct stream *s, struct err *e)
{
	const void *data;
	size_t len = 0;
	int r;
	while ((r = stream_next(s, &data, &len, e)) == 0)
		;
	return r == STREAM_END ? 0 : r;
}

int stream_blob_digest(struct stream *s, struct digest *ret, struct err *e)
{
	size_t len = 0;
	do {
		int r = read_chunk(s, &len, e);
		if (r < 0)
			return r;
	} while (len > 0);
	struct hasher copy = s->blob_hash;
	hasher_finish(&copy, ret);
	return 0;
}

void stream_content_digest(struct stream *s, struct digest *ret)
{
	struct hasher copy = s->raw ? s->content_hash : s->blob_hash;
	hasher_finish(&copy, ret);
}

int stream_check_digest(const struct digest *want, const struct digest *got, const char *what,
			struct err *e)
{
	if (digest_equal(want, got))
		return 0;
	return err_set(e, -EBADMSG, "%s mismatch: it is sha256:%.12s... (fetch the image again)",
		       what, got->hex);
}

int stream_verify(struct stream *s, const struct digest *blob, const struct digest *diff_id,
		  struct err *e)
{
	struct digest got;
	int r = stream_drain(s, e);
	if (r == 0)
		r = stream_blob_digest(s, &got, e);
	if (r == 0 && blob)
		r = stream_check_digest(blob, &got, "digest", e);
	if (r < 0)
		return r;
	stream_content_digest(s, &got);
	return stream_check_digest(diff_id, &got, "diff_id", e);
}

int stream_decompress_file(int from, uint64_t size, int to, uint64_t max, struct digest *ret,
			   struct err *e)
{
	struct span span = { .fd = from, .size = size };
	CLEANUP(stream_freep) struct stream *s = NULL;
	int r = stream_new(&span, true, max, &s, e);
	while (r == 0 && s) {
		const void *data = NULL;
		size_t len = 0;
		r = stream_next(s, &data, &len, e);
		if (r != 0)
			break;
		r = fd_write_all(to, data, len);
		if (r < 0)
			err_sys(e, r, "writing the decompressed archive");
	}
	if (r != STREAM_END || !s)
		return r;
	stream_content_digest(s, ret);
	return 0;
}
