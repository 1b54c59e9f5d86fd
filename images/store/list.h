/* SPDX-License-Identifier: Apache-2.0 */
/* The images of the store, as people are told of them. */
#ifndef IMAGES_STORE_LIST_H
#define IMAGES_STORE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "images/spec/config.h"
#include "images/spec/digest.h"
#include "images/store/store.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

struct listed_image {
	char id[IMAGE_ID_LEN + 1]; /* as store_list_id() */
	struct strv names;         /* owned; those that stand for it, the newest last: 0 or more */
	uint64_t size; /* bytes of its blobs and its rendered file; what others share counts, too */
	int64_t imported_ns; /* since the epoch */
	int64_t last_use_ns; /* since the epoch; 0 if that is unknown */
};

/* All images, sorted by digest. */
struct store_list {
	struct listed_image *v; /* owned */
	size_t n;
};

#define STORE_LIST_INIT ((struct store_list){ 0 })

/* Frees the images. */
void store_list_deinit(struct store_list *l);

/*
 * Lists the images. One that goes away meanwhile is left out; so is one whose record is damaged,
 * and @damaged is told why, with @ctx. 0, or -errno with @e (-E2BIG beyond CATALOG_IMAGES_MAX);
 * @ret (STORE_LIST_INIT) is to be deinitialised in any case.
 */
int store_list_read(const struct store *s, void (*damaged)(void *ctx, const char *why), void *ctx,
		    struct store_list *ret, struct err *e);

/* What people call the image @id, as record_id_text(); without its record "sha256-HEX". */
void store_list_id(const struct store *s, const struct digest *id, char out[IMAGE_ID_LEN + 1]);

#endif
