/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which blobs and rendered files the images of the store need. Loaded once, then changed in memory:
 * what would remain if these and those images were removed.
 */
#ifndef IMAGES_STORE_INVENTORY_H
#define IMAGES_STORE_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/digest.h"
#include "images/store/store.h"
#include "lib/base/err.h"

struct inventory_image {
	struct digest id;
	int64_t last_use_ns;
	bool removed;
	bool stuck; /* it could not be removed */
};

/* One image's need of one file. */
struct inventory_use {
	struct digest digest; /* of a blob, or chain ID of a rendered file */
	uint64_t size;        /* of that file; 0 if another use says it */
	size_t image;         /* index into images */
	bool is_tree;
};

/* One image's name. */
struct inventory_name {
	struct digest digest; /* of its text */
	size_t image;         /* index into images */
};

struct inventory {
	struct inventory_image *images; /* owned */
	size_t n_images;
	struct inventory_use *uses; /* owned, sorted by kind and digest */
	size_t n_uses;
	struct inventory_name *names; /* owned, sorted by digest */
	size_t n_names;
};

#define INVENTORY_INIT ((struct inventory){ 0 })

/* Frees what it holds. Accepts NULL. */
void inventory_deinit(struct inventory *v);

/*
 * Reads records and manifests. The caller holds the lock of the images if it is going to remove
 * files. Of an image whose documents are damaged nothing is needed but its record; one that cannot
 * be read for another reason is a failure, as nobody knows what it needs. 0 or -errno with @e.
 */
int inventory_load(const struct store *s, struct inventory *ret, struct err *e);

/* True if an image that is not removed needs the blob, or the rendered file of that chain ID. */
bool inventory_needs(const struct inventory *v, const struct digest *digest, bool is_tree);

/* True if the record of an image that is not removed has the name. */
bool inventory_has_name(const struct inventory *v, const char *name);

/* Bytes of all files that images that are not removed need, each counted once. */
uint64_t inventory_size(const struct inventory *v);

#endif
