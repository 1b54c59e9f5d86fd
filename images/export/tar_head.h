/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of the tar that wraps the blobs of an OCI layout. It is written around a blob whose size
 * and name are known only when it has been written, so its header must have a place of its own.
 *
 * POSIX.1-2017, pax, "ustar Interchange Format"; sizes of 8 GiB and more in GNU's base 256, which
 * all readers know.
 */
#ifndef IMAGES_EXPORT_TAR_HEAD_H
#define IMAGES_EXPORT_TAR_HEAD_H

#include <stddef.h>
#include <stdint.h>

#define TAR_HEAD_SIZE     ((size_t)512)
#define TAR_HEAD_NAME_MAX ((size_t)100) /* without the prefix field, which no name here needs */
#define TAR_END_SIZE      (2 * TAR_HEAD_SIZE) /* of zeros behind the last member */

/*
 * Fills @head for a regular file, owner 0:0, mode 0644, mtime 0. 0, or -ENAMETOOLONG beyond
 * TAR_HEAD_NAME_MAX.
 */
int tar_head_fill(unsigned char head[TAR_HEAD_SIZE], const char *name, uint64_t size);

/* How many bytes of zeros follow a member of @size bytes. */
static inline size_t tar_head_padding(uint64_t size)
{
	return (size_t)((TAR_HEAD_SIZE - size % TAR_HEAD_SIZE) % TAR_HEAD_SIZE);
}

#endif
