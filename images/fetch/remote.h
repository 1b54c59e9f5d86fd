/* SPDX-License-Identifier: Apache-2.0 */
/* Images from registries. */
#ifndef IMAGES_FETCH_REMOTE_H
#define IMAGES_FETCH_REMOTE_H

#include "images/fetch/common/options.h"
#include "images/fetch/found.h"
#include "images/spec/registry_name.h"
#include "images/store/store.h"

/* An image of a registry that is being looked for. A zeroed object is empty. */
struct remote {
	struct store *store;
	const struct fetch_request *request;
	struct registry_name name;
	struct found found;
};

/*
 * Looks what the store has of the image @text (what stands behind docker://): r->found is
 * FOUND_KNOWN or FOUND_NOWHERE. What @q points to is borrowed by @r, which is filled. 0 or -errno
 * with @e.
 */
int remote_look(struct remote *r, struct store *s, const char *text, const struct fetch_request *q,
		struct err *e);

/*
 * Asks the registry what the name stands for, and fetches what the store has not: r->found is
 * FOUND_STORED or FOUND_BLOBS. 0 or -errno with @e.
 */
int remote_get(struct remote *r, struct err *e);

#endif
