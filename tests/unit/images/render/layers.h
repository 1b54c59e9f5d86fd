/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for tests: tars made in memory from a few words. */
#ifndef TESTS_UNIT_IMAGES_RENDER_LAYERS_H
#define TESTS_UNIT_IMAGES_RENDER_LAYERS_H

#include <stddef.h>

#include "images/render/span.h"
#include "images/spec/digest.h"

#define LAYERS_TAR_MAX ((size_t)16 * 1024 * 1024)

/* A file in memory. */
struct blob {
	unsigned char *data; /* owned */
	size_t len;
};

void blob_deinit(struct blob *b);

#define cleanup_blob CLEANUP(blob_deinit)

/*
 * Makes a pax tar. Each line is one entry: a type letter, the path, then attributes:
 *
 *	d PATH                 directory            f PATH text=CONTENT   regular file
 *	l PATH to=TARGET       symbolic link        h PATH to=PATH        hard link
 *	c PATH dev=MAJOR,MINOR character device     b PATH dev=M,N        block device
 *	p PATH                 FIFO
 *
 * and for all: mode=OCTAL uid=N gid=N mtime=N x:NAME=VALUE; for files zeros=N (that many zero bytes
 * after the text) and hole=N (a hole of that many bytes before the text). Words are separated by
 * blanks; "%HH" stands for a byte. @lines ends with NULL. @format is "pax", "ustar" or "gnutar".
 */
void layers_make(const char *const *lines, const char *format, struct blob *ret);

/* Compresses with "gzip", "zstd", "xz" or "bzip2". */
void layers_compress(const struct blob *in, const char *filter, struct blob *ret);

/*
 * Appends to the file @fd a zstd frame of the same content as @in, not compressed, followed by
 * @zeros blocks of 128 KiB of zeros. @window is the byte that says how far back it may refer (RFC
 * 8878, 3.1.1.1.2).
 */
void layers_frame(int fd, const struct blob *in, size_t zeros, unsigned char window);

/* Puts the bytes into a memfd; the span is the whole of it. */
void layers_span(const void *data, size_t len, struct span *ret);

#endif
