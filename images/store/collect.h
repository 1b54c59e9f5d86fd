/* SPDX-License-Identifier: Apache-2.0 */
/* Removing images, and what is left over. */
#ifndef IMAGES_STORE_COLLECT_H
#define IMAGES_STORE_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "images/spec/digest.h"
#include "images/store/store.h"
#include "lib/base/err.h"

/*
 * Removes the images @ids, their rendered files and all that no other image needs. Pods keep what
 * they have. Needs no space on the disk. 0, or -errno with @e of the first failure; the rest is
 * done.
 */
int collect_remove(const struct store *s, const struct digest *ids, size_t n, struct err *e);

/* What to collect; 0 is nothing special. */
struct collect_plan {
	int64_t now_ns;
	int64_t grace_ns; /* images and unfinished work are kept for that long after their last use */
	uint64_t size_max; /* bytes; beyond, the images used longest ago go, too; 0: no limit */
	const struct digest *used; /* ids of images that pods use: these stay */
	size_t n_used;
	/* Told of each image that was removed, by what people call it; may be NULL. */
	void (*removed)(void *ctx, const char *id);
	void *ctx;
};

/*
 * Removes rendered files and blobs that no image needs, images that were not used for the grace
 * period, more images while all are larger than size_max, and what interrupted fetches left behind.
 * 0, or -errno with @e of the first failure; the rest is done.
 */
int collect_garbage(const struct store *s, const struct collect_plan *plan, struct err *e);

#endif
