/* SPDX-License-Identifier: Apache-2.0 */
/* Images of registries: how they come here. */
#ifndef IMAGES_FETCH_REMOTE_H
#define IMAGES_FETCH_REMOTE_H

#include "images/known/remote.h"
#include "lib/base/err.h"

/*
 * Asks the registry what the name stands for, and fetches what the store has not: r->found is
 * FOUND_STORED or FOUND_BLOBS. 0 or -errno with @e.
 */
int remote_get(struct remote *r, struct err *e);

#endif
