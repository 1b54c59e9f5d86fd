/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of contents of the archive that an image comes in.
 *
 * "docker save" and "skopeo copy ... oci-archive:" wrap blobs into a tar. husk does not unpack it:
 * it reads the headers once and then takes each blob as a range of the archive. Only this outer tar
 * is read here, with exact offsets; layers, with all that a tar can hold, are libarchive's.
 *
 * Understood: ustar, GNU and pax headers (POSIX.1-2017, pax, "ustar Interchange Format" and "pax
 * Header Block") as far as they give names, link names and sizes.
 */
#ifndef HOST_FETCH_TAR_INDEX_H
#define HOST_FETCH_TAR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define TAR_BLOCK_SIZE        ((size_t)512)
#define TAR_INDEX_NAME_MAX    ((size_t)255)   /* OCI_ENTRY_NAME_MAX: longer names are skipped */
#define TAR_INDEX_ENTRIES_MAX ((size_t)16384) /* 4 members for each of 128 layers, 32 images */
#define TAR_INDEX_HEADERS_MAX ((size_t)65536) /* headers looked at, of any kind */
#define TAR_INDEX_PAX_MAX     ((size_t)65536) /* bytes of one pax or GNU long-name member */

struct tar_index;

/*
 * Reads @size bytes at @offset into @mem. 0, or -errno (-ENODATA if the file ends before that).
 */
typedef int (*tar_read_fn)(void *ctx, void *mem, size_t size, uint64_t offset);

/*
 * Reads all headers of an archive of @size bytes. 0; -EBADMSG if it is not a tar or damaged, -E2BIG,
 * -ENOMEM, or @read's error, with @e.
 */
int tar_index_new(tar_read_fn read, void *ctx, uint64_t size, struct tar_index **ret,
		  struct err *e);

/* Accepts NULL. */
void tar_index_free(struct tar_index *t);

/*
 * Where the content of the regular file @name is. A link inside the archive is followed once. The
 * first of several members of one name counts. 0, or -ENOENT.
 */
int tar_index_find(const struct tar_index *t, const char *name, uint64_t *ret_offset,
		   uint64_t *ret_size);

/* True if @block of TAR_BLOCK_SIZE bytes is a tar header with a valid checksum. */
bool tar_is_header(const unsigned char *block);

#endif
