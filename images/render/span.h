/* SPDX-License-Identifier: Apache-2.0 */
/* A range of bytes of an open file: how blobs are handed around without being copied. */
#ifndef IMAGES_RENDER_SPAN_H
#define IMAGES_RENDER_SPAN_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/digest.h"

/* A blob: @size bytes at @offset of @fd, which is owned. */
struct span {
	int fd;
	uint64_t offset;
	uint64_t size;
};

/* A blob in a file of its own. */
struct blob_file {
	struct digest digest;
	uint64_t size;
	int fd; /* read-only */
};

#define SPAN_INIT ((struct span){ .fd = -EBADF })

/* Closes the descriptor. Accepts NULL. */
void span_deinit(struct span *s);

/*
 * Reads @size bytes at @offset of the span. 0, -ENODATA if they are not inside of the span or the
 * file has become shorter, or -errno.
 */
int span_read(const struct span *s, void *mem, size_t size, uint64_t offset);

/* Adds all bytes of the span to @h. 0 or -errno. */
int span_hash(const struct span *s, struct hasher *h);

/* The digest of a whole span. 0 or -errno. */
int span_digest(const struct span *s, struct digest *ret);

#endif
