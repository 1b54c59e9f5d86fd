/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uncompressed bytes of a blob, hashed on the way.
 *
 * Runs inside of the confined child only (libarchive reads hostile input here); it makes no system
 * call but pread(2) and what malloc(3) needs. libarchive 3.6 does not check all of its allocations:
 * when memory is short the child may die of a fault, which its parent reports.
 */
#ifndef IMAGES_RENDER_STREAM_H
#define IMAGES_RENDER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/render/span.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define STREAM_MAGIC_LEN ((size_t)6)
#define STREAM_HEAD_LEN  ((size_t)18) /* of a zstd frame, at most */

/*
 * What a zstd frame may refer back to: the most that any level of zstd needs (22, or --long), and
 * what libzstd takes unless it is told otherwise. RFC 8878 (3.1.1.1.2) wants 8 MiB of every
 * decoder, but level 19 of some libraries needs more.
 */
#define STREAM_WINDOW_MAX    ((uint64_t)128 << 20)
#define STREAM_SKIPPABLE_MAX ((size_t)1024) /* zstd frames without content ahead of all else */
#define STREAM_CHUNK_MAX     ((size_t)256 * 1024) /* bytes read from the blob at a time */

/* STREAM_END: no more bytes. */
enum {
	STREAM_END = 1,
};

enum stream_compression {
	STREAM_PLAIN, /* none that is known */
	STREAM_GZIP,
	STREAM_ZSTD,
	STREAM_XZ,    /* only for whole archives, not for layers */
	STREAM_BZIP2, /* likewise */
};

/* What the first STREAM_MAGIC_LEN bytes of a file say. */
enum stream_compression stream_detect(const unsigned char magic[STREAM_MAGIC_LEN]);

/* The same for a blob, which may be shorter. 0 or -errno. */
int stream_detect_span(const struct span *span, enum stream_compression *ret);

/*
 * How far back the zstd frame that begins with @head, @len bytes of it, may refer (RFC 8878,
 * 3.1.1.1). 0 if that is not known from it.
 */
uint64_t stream_zstd_window(const unsigned char *head, size_t len);

struct stream;

/*
 * Starts reading @span, which is borrowed. gzip and zstd are recognised by content, with @all also
 * xz and bzip2. A zstd window above STREAM_WINDOW_MAX is an error. At most @bytes_max uncompressed
 * bytes are yielded. 0 or -errno with @e.
 */
int stream_new(const struct span *span, bool all, uint64_t bytes_max, struct stream **ret,
	       struct err *e);

/* Accepts NULL. */
void stream_free(struct stream *s);
DEFINE_FREEP(stream);

/*
 * Yields the next bytes, valid until the next call. 0, STREAM_END, or -errno with @e: -EFBIG beyond
 * bytes_max, -EBADMSG for damaged data.
 */
int stream_next(struct stream *s, const void **ret, size_t *ret_len, struct err *e);

/* How many uncompressed bytes were yielded so far. */
uint64_t stream_bytes(const struct stream *s);

/* Reads to the end of the stream and of the blob, so that both digests are known. */
int stream_drain(struct stream *s, struct err *e);

/* The digest of the whole blob as it is stored; reads what is left of it. 0 or -errno with @e. */
int stream_blob_digest(struct stream *s, struct digest *ret, struct err *e);

/* The digest of all bytes that the stream yielded; call it after stream_drain(), once. */
void stream_content_digest(struct stream *s, struct digest *ret);

/* 0 if @got is @want; else -EBADMSG, with @e calling it @what. */
int stream_check_digest(const struct digest *want, const struct digest *got, const char *what,
			struct err *e);

/*
 * Reads what is left and compares the digests: @blob (NULL if there is none to compare with) is
 * that of the blob as it is stored, @diff_id that of what it contains. To be called once. 0 or
 * -errno with @e.
 */
int stream_verify(struct stream *s, const struct digest *blob, const struct digest *diff_id,
		  struct err *e);

/*
 * Writes the uncompressed content of the file @from, at most @max bytes, to @to; *ret is its
 * digest. 0 or -errno with @e.
 */
int stream_decompress_file(int from, uint64_t size, int to, uint64_t max, struct digest *ret,
			   struct err *e);

#endif
