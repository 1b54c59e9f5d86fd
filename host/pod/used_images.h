/* SPDX-License-Identifier: Apache-2.0 */
/* Which images pods use, so that garbage collection leaves them alone. */
#ifndef HOST_POD_USED_IMAGES_H
#define HOST_POD_USED_IMAGES_H

#include <stddef.h>

#include "host/pod/pod.h"
#include "images/images.h"
#include "lib/base/err.h"

struct used_images {
	const struct store *store; /* borrowed */
	struct digest *ids;        /* owned; one may be there more than once */
	size_t n, alloc;
};

/* Frees the list; accepts one of zeros. */
void used_images_deinit(struct used_images *used);

/*
 * Adds to @used, of zeros but for its store, the images of that store which the visible pods of @ps
 * use: for their apps, and as stage1. 0, or -errno and @e, also if one pod's cannot be read: what
 * it uses would be removed. @used is the caller's to deinit in any case.
 */
int pods_used_images(struct pods *ps, struct used_images *used, struct err *e);

#endif
