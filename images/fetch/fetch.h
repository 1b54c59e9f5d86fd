/* SPDX-License-Identifier: Apache-2.0 */
/* What the user named, brought into the store. */
#ifndef IMAGES_FETCH_FETCH_H
#define IMAGES_FETCH_FETCH_H

#include "images/fetch/common/options.h"
#include "images/known/found.h"
#include "images/store/store.h"
#include "lib/base/err.h"

/*
 * Brings the image, and what it depends on, into the store, if it is not there; what @q points to
 * is borrowed for the call. The calling process must have a single thread and must not have SIGCHLD
 * ignored. 0, STORE_MISSING if somebody removed it meanwhile, or -errno with @e, which does not
 * name the image.
 */
int fetch_to_store(struct store *s, const struct fetch_request *q, struct fetched *ret,
		   struct err *e);

#endif
