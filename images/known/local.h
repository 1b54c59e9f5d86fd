/* SPDX-License-Identifier: Apache-2.0 */
/* Images in files and directories of this machine. */
#ifndef IMAGES_KNOWN_LOCAL_H
#define IMAGES_KNOWN_LOCAL_H

#include "images/fetch/common/options.h"
#include "images/known/found.h"
#include "images/store/store.h"

/*
 * Looks for what @ref names (a type up to REFERENCE_ROOTFS), which is borrowed by @ret, a zeroed
 * object: the image that is known if it is a file, or an OCI layout, that has not changed since it
 * was imported, which is not even read; else the file. 0 or -errno with @e.
 */
int local_look(struct store *s, const struct reference *ref, const struct fetch_request *q,
	       struct found *ret, struct err *e);

/*
 * Whether the image of what local_look() has found is known by now, by its stamp: then that is
 * f->image.
 */
bool local_is_known(const struct store *s, const struct fetch_request *q, struct found *f);

/*
 * Asks whoever wants the tree what it is (fetch_request.identify), unless others may say in the
 * store what is known: the group of a shared one.
 */
bool local_identify(const struct store *s, const struct fetch_request *q,
		    char ret[REF_STAMP_MAX + 1]);

#endif
