/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `husk image export` of blobs bit for bit, so that the image keeps its digest: of an OCI image all
 * of them in an OCI archive, of an appc image the archive that it is, which the store keeps as a
 * plain tar.
 */
#ifndef IMAGES_EXPORT_COPY_H
#define IMAGES_EXPORT_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "images/render/span.h"
#include "images/store/image.h"
#include "lib/base/err.h"

/* What to copy. All is borrowed. */
struct copy_job {
	const struct blob_file *blobs; /* at least one, the manifest first; none twice */
	size_t n;
	const char *type; /* media type of the manifest; NULL: an OCI manifest */
	const char *name; /* of the image: printable */
	int out;          /* an empty file, read-write */
};

/*
 * Writes the archive. Nothing is parsed, so this needs no confinement. 0 or -errno with @e:
 * -EBADMSG if a blob is not what its digest says.
 */
int copy_image(const struct copy_job *job, struct err *e);

/*
 * Writes @blob into the empty file @out. 0 or -errno with @e: -EBADMSG if it is not what its digest
 * says.
 */
int copy_blob(const struct blob_file *blob, int out, struct err *e);

/*
 * Writes what an open image came as, one of the two, into the empty file @out. 0 or -errno with @e
 * as above.
 */
int copy_open_image(const struct image *image, int out, struct err *e);

#endif
