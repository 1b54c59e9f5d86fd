/* SPDX-License-Identifier: Apache-2.0 */
/* Images of registries: what is known of them. */
#ifndef IMAGES_KNOWN_REMOTE_H
#define IMAGES_KNOWN_REMOTE_H

#include <stdbool.h>

#include "images/fetch/common/options.h"
#include "images/known/found.h"
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
 * True if the store has what the name stood for last, and the host's policy was asked about it, if
 * it counts: then *ret is the image.
 */
bool remote_is_known(struct remote *r, struct digest *ret);

/* Frees what was found. */
static inline void remote_deinit(struct remote *r)
{
	found_deinit(&r->found);
}

#endif
