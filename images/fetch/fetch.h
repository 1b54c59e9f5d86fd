/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images by what the user called them: found in the store, or brought there first.
 */
#ifndef IMAGES_FETCH_FETCH_H
#define IMAGES_FETCH_FETCH_H

#include "images/fetch/common/options.h"
#include "images/store/image.h"
#include "images/store/store.h"
#include "lib/base/err.h"

struct fetched;

/* Reads "never", "new" or "update". 0, or -EINVAL and @e. */
int pull_policy_parse(const char *text, enum pull_policy *ret, struct err *e);

/*
 * Brings the image, and what it depends on, into the store, if it is not there; what @q points to
 * is borrowed for the call. The calling process must have a single thread and must not have SIGCHLD
 * ignored. 0, STORE_MISSING if somebody removed it meanwhile, or -errno with @e, which does not
 * name the image.
 */
int fetch_to_store(struct store *s, const struct fetch_request *q, struct fetched *ret,
		   struct err *e);

/* The same, and opens the image. 0, or -errno with @e: one line that begins with `image "..."`. */
int fetch_image(struct store *s, const struct fetch_request *q, struct image **ret, struct err *e);

#endif
