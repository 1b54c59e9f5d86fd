/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `husk image extract`: an image as a directory with files.
 *
 * The rendered image is read, and the files are made, in a confined child that reaches nothing but
 * the new directory.
 */
#ifndef IMAGES_EXPORT_EXTRACT_H
#define IMAGES_EXPORT_EXTRACT_H

#include <stdbool.h>

#include "images/export/unpack.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* What to extract. All is borrowed. */
struct extract_job {
	int image;                  /* the rendered image, read-only */
	const struct buf *manifest; /* for DIR/manifest; NULL: DIR itself is the root file system */
	const char *dir;            /* where; see place_open() */
	bool overwrite;
};

/*
 * Extracts the image: the root file system into DIR/rootfs, and the manifest, mode 0600, beside it;
 * DIR has mode 0700. DIR appears when it is complete and is on disk; on failure, or when SIGHUP,
 * SIGINT or SIGTERM comes, which then ends the process, nothing is left. The caller has a single
 * thread. 0 or -errno with @e.
 */
int extract_image(const struct extract_job *job, struct unpack_report *ret, struct err *e);

#endif
