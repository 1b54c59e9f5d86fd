/* SPDX-License-Identifier: Apache-2.0 */
/* appc images that are found by their names: asked for by the user, or by an image on top. */
#ifndef IMAGES_FETCH_DISCOVERED_H
#define IMAGES_FETCH_DISCOVERED_H

#include <stdbool.h>

#include "images/appc/discovery.h"
#include "images/fetch/common/options.h"
#include "images/fetch/importer.h"
#include "images/fetch/url.h"
#include "images/store/store.h"
#include "lib/base/err.h"

/* An image on its way. The members but @url and @importer are discovered.c's. */
struct discovered {
	struct fetch_request request;
	struct discovery places;
	struct url url; /* of the image, and what is found there */
	struct importer importer;
};

/*
 * Asks the site that the name begins with where the image is, gets it from the first of these
 * places that has it, and opens it (importer_open()): q->expected says the name. @nested: the
 * caller has another import. *ret is to be deinitialised in any case; @s and what @q points to are
 * borrowed. 0, or -errno and the first place's @e.
 */
int discovered_open(struct discovered *ret, struct store *s, const struct fetch_request *q,
		    bool nested, struct err *e);

/* Frees what it owns. */
void discovered_deinit(struct discovered *d);

#endif
