/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What any source has found, brought into the store. In two steps, because an appc image may be on
 * top of others, which the caller has to bring there between the two.
 */
#ifndef IMAGES_FETCH_IMPORTER_H
#define IMAGES_FETCH_IMPORTER_H

#include "images/fetch/common/options.h"
#include "images/fetch/resolve.h"
#include "images/known/found.h"
#include "images/spec/aci.h"
#include "images/store/store.h"

/* An image on its way. A zeroed object is empty. */
struct importer {
	struct store *store;
	struct found *found;
	const struct fetch_request *request;
	struct source *source; /* of a file; owned */
	struct resolved image; /* of a file with an OCI or docker image */
	struct aci_manifest
		aci;    /* of an appc image: @aci.dependencies are to be brought into the store */
	char *manifest; /* likewise; its text, owned */
	size_t manifest_len;
};

/*
 * Reads the documents of what @f, which is borrowed as @s and @q are, says is to be read, and
 * checks whether it may be imported: signatures, names, the way it came. *ret is to be
 * deinitialised in any case. 0 or -errno with @e.
 */
int importer_open(struct importer *ret, struct store *s, struct found *f,
		  const struct fetch_request *q, struct err *e);

/* Frees what it owns, and leaves an empty one. */
void importer_deinit(struct importer *i);

/*
 * Imports it on top of the @n_below images @below, the lowest first, and notes what f->memo says;
 * i->found->image is the image then. 0, STORE_MISSING if it was removed meanwhile, or -errno with
 * @e.
 */
int importer_finish(struct importer *i, const struct digest *below, size_t n_below, struct err *e);

#endif
