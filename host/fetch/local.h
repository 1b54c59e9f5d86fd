/* SPDX-License-Identifier: Apache-2.0 */
/* Images from files and directories of this machine. */
#ifndef HOST_FETCH_LOCAL_H
#define HOST_FETCH_LOCAL_H

#include "host/fetch/fetch.h"
#include "host/fetch/reference.h"
#include "host/image/digest.h"
#include "host/store/store.h"
#include "lib/base/err.h"

struct import;

/* An image of the store, and what it is called here. */
struct fetched {
	struct digest id;
	char name[IMAGE_NAME_MAX + 1]; /* "" leaves it to the store */
	bool rendered;                 /* just now */
};

/* A file that somebody else has fetched, for local_import(). Everything is borrowed. */
struct local_file {
	struct import *import; /* begun */
	const char *hint;      /* what the image is called if it does not say */
	/* Opens the signature of an appc image: the caller's descriptor, or -errno and @e. */
	int (*signature)(void *ctx, struct err *e);
	void *ctx;
	bool tampered; /* anybody may have changed it on its way, so what cannot be signed is refused */
};

/*
 * Brings the image in the file that @ref names into the store, through f->import. *ret_unverified says whether
 * it would have been refused without q->options.insecure_image. 0, STORE_MISSING if it was removed meanwhile, or -errno with @e.
 */
int local_import(struct store *s, const struct reference *ref, const struct local_file *f,
		 const struct fetch_request *q, struct fetched *ret, bool *ret_unverified,
		 struct err *e);

/*
 * Brings the image that @ref names (a type up to REFERENCE_ROOTFS) into the store, unless it is there: a
 * file that has not changed since it was imported is not even read; of a layout or an archive the
 * documents are read first; a directory with a root file system is packed each time. 0, STORE_MISSING if it was removed meanwhile, or -errno with @e.
 */
int local_fetch(struct store *s, const struct reference *ref, const struct fetch_request *q,
		struct fetched *ret, struct err *e);

#endif
