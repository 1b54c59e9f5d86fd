/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store has already of what somebody asks for: no server is asked and no image is read, so
 * this needs none of the libraries that do.
 */
#ifndef IMAGES_KNOWN_KNOWN_H
#define IMAGES_KNOWN_KNOWN_H

#include "images/fetch/common/options.h"
#include "images/known/found.h"
#include "images/known/reference.h"
#include "images/store/store.h"
#include "lib/base/err.h"

/* It has to be fetched. */
enum {
	KNOWN_NOT = STORE_BUSY + 1,
};

/*
 * Takes q->reference apart (*ref, which borrows it) and looks for it. 0 and *ret: that is it, as
 * q->policy has it. KNOWN_NOT: it has to be fetched; *ref says from where: what is a REFERENCE_NAME
 * then is an appc name that can be discovered. STORE_MISSING if somebody removed it meanwhile, or
 * -errno with @e, also if it is neither known nor may be fetched.
 */
int known_find(struct store *s, const struct fetch_request *q, struct reference *ref,
	       struct fetched *ret, struct err *e);

#endif
