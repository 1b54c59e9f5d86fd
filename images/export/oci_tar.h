/* SPDX-License-Identifier: Apache-2.0 */
/* The tar that is an OCI archive (image-spec 1.1, image-layout.md), member after member. */
#ifndef IMAGES_EXPORT_OCI_TAR_H
#define IMAGES_EXPORT_OCI_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "images/export/describe.h"
#include "images/export/tar_head.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"

struct oci_tar {
	int fd;       /* borrowed; a file that can be written anywhere */
	uint64_t end; /* of what has been written so far */
};

/* Writes the name of the member that has the blob. */
void oci_tar_blob_name(const struct digest *d, char out[TAR_HEAD_NAME_MAX + 1]);

/*
 * Adds a member whose content of @size bytes the caller writes, or has written: oci_tar_head()
 * first, at whose end (TAR_HEAD_SIZE bytes on) the content begins; then oci_tar_pad() with the same
 * size. 0 or -errno with @e.
 */
int oci_tar_head(struct oci_tar *t, const char *name, uint64_t size, struct err *e);
int oci_tar_pad(struct oci_tar *t, uint64_t size, struct err *e);

/* Adds a member of @len bytes. 0 or -errno with @e. */
int oci_tar_member(struct oci_tar *t, const char *name, const void *data, size_t len,
		   struct err *e);

/*
 * Ends the archive: adds the index of the image @name with that @manifest (describe_oci_index()),
 * oci-layout and the end mark. 0 or -errno with @e.
 */
int oci_tar_finish(struct oci_tar *t, const struct blob_ref *manifest, const char *type,
		   const char *name, struct err *e);

#endif
