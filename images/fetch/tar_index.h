/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of contents of the archive that an image comes in.
 *
 * "docker save" and "skopeo copy ... oci-archive:" wrap blobs into a tar. husk does not unpack it:
 * libarchive reads the headers once, in a confined child, and each blob is then taken as a range of
 * the archive. The table is what the child reports: whoever looks a file up believes nothing of it.
 */
#ifndef IMAGES_FETCH_TAR_INDEX_H
#define IMAGES_FETCH_TAR_INDEX_H

#include <stdint.h>

#include "images/render/span.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define TAR_INDEX_NAME_MAX    ((size_t)255)   /* OCI_ENTRY_NAME_MAX: longer names are skipped */
#define TAR_INDEX_ENTRIES_MAX ((size_t)16384) /* 4 members for each of 128 layers, 32 images */
#define TAR_INDEX_HEADERS_MAX ((size_t)65536) /* headers looked at, of any kind */
/* Bytes of a table: two names, two numbers and what ends them, for each entry. */
#define TAR_INDEX_MAX (TAR_INDEX_ENTRIES_MAX * (2 * TAR_INDEX_NAME_MAX + 64))

/*
 * Appends the table of the archive @tar to @index (initialised with TAR_INDEX_MAX): its regular
 * files but sparse ones, whose content is not one range, and links. 0; -EINVAL if it is not a tar,
 * -EBADMSG if it is damaged, -E2BIG, -ENOMEM, with @e.
 */
int tar_index_scan(const struct span *tar, struct buf *index, struct err *e);

/*
 * Where the content of the regular file @name is: inside of the archive of @size bytes. A link
 * inside the archive is followed once. The first of several members of one name counts. 0, or
 * -ENOENT.
 */
int tar_index_find(const struct buf *index, uint64_t size, const char *name, uint64_t *ret_offset,
		   uint64_t *ret_size);

#endif
