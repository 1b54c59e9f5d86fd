/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a squashfs image back, with libsquashfs' readers, into lines of text. */
#ifndef TESTS_UNIT_IMAGES_RENDER_LISTING_H
#define TESTS_UNIT_IMAGES_RENDER_LISTING_H

#include <stddef.h>

/*
 * One line for each name, sorted by path, the root first:
 *
 *	TYPE MODE UID:GID MTIME NLINK PATH [CONTENT] [XATTR=VALUE]...
 *
 * CONTENT is "=text" for small files, "size=N" for others, "->target", or "major,minor". Bytes that
 * are not printable are shown as %HH. The caller frees the text.
 */
char *listing_of(int fd);

/* The content of the regular file @path of the image; the caller frees it. */
char *listing_content(int fd, const char *path, size_t *ret_len);

#endif
