/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blobs of an image come from: a directory, or ranges of one archive file.
 *
 * A source hands out spans: read-only descriptors with an offset and a size. Nothing is copied,
 * except that an archive which is compressed as a whole is decompressed once, by a confined child,
 * into a file without a name.
 */
#ifndef IMAGES_FETCH_SOURCE_H
#define IMAGES_FETCH_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "images/known/reference.h"
#include "images/render/span.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"

enum source_type {
	SOURCE_OCI,    /* oci-layout, index.json, blobs/sha256/HEX */
	SOURCE_DOCKER, /* manifest.json and what it names */
	SOURCE_ACI,    /* manifest and rootfs/ */
};

struct source;

/*
 * Opens what @ref names: a directory or a regular file, nothing else is opened at all. @tmp_dirfd
 * is where a decompressed copy goes, which may have at most @bytes_max bytes. 0 or -errno with @e.
 */
int source_open(const struct reference *ref, int tmp_dirfd, uint64_t bytes_max, struct source **ret,
		struct err *e);

/* Accepts NULL. */
void source_free(struct source *s);

/* Of an archive: the file as it came (borrowed), and the tar in it (@s keeps the descriptor). */
int source_file(const struct source *s);
struct span source_tar(const struct source *s);

/* What kind of source it is. */
enum source_type source_type(const struct source *s);

/*
 * Finds a file of the source by its name ("blobs/sha256/HEX"). 0 with *ret owned by the caller, or
 * -errno with @e (-ENOENT: no such file in there).
 */
int source_find(const struct source *s, const char *name, struct span *ret, struct err *e);

/*
 * Reads a small file of the source. *ret is NUL-terminated and owned by the caller. As
 * source_find(); -EFBIG beyond @max bytes.
 */
int source_read(const struct source *s, const char *name, size_t max, char **ret, size_t *ret_len,
		struct err *e);

/* The same for a span that @what, in messages, is called. */
int source_read_span(const struct span *span, const char *what, size_t max, char **ret,
		     size_t *ret_len, struct err *e);

/*
 * Writes the content of the file @from of @size bytes, decompressed by a confined child if it is
 * compressed, to @to: at most @max bytes, of which *ret is the digest. 0 or -errno with @e.
 */
int source_decompress(int from, uint64_t size, int to, uint64_t max, struct digest *ret,
		      struct err *e);

#endif
