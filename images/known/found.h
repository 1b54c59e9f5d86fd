/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source has found. Sources (local.h, url.h, remote.h) fill it in and know nothing of each
 * other nor of what becomes of it; importer.h brings it into the store.
 */
#ifndef IMAGES_KNOWN_FOUND_H
#define IMAGES_KNOWN_FOUND_H

#include "images/known/reference.h"
#include "images/store/import.h"
#include "images/store/ref.h"

/* Where the image is. */
enum found_where {
	FOUND_NOWHERE, /* not known; it is still to be got */
	FOUND_KNOWN,   /* in the store, as was known */
	FOUND_CURRENT, /* likewise, and somebody was asked: the memo is to be noted */
	FOUND_STORED,  /* in the store, but perhaps not under this name: that is to be noted, too */
	FOUND_BLOBS,   /* all blobs of the image are in the import */
	FOUND_FILE,    /* in a file, which may be anything */
};

/* An image of the store, and what it is called here. */
struct fetched {
	struct digest id;
	char name[IMAGE_NAME_MAX + 1]; /* "" leaves it to the store */
	bool rendered;                 /* just now */
};

/* What is borrowed must outlive it. */
struct found {
	enum found_where where;
	struct fetched image;  /* unless where is FOUND_NOWHERE or FOUND_FILE */
	struct ref memo;       /* what was asked for, and what is remembered of it */
	struct import *import; /* owned; of the memo's text; NULL: not begun */

	/* Of a file. */
	struct reference file;
	const char *hint; /* its image, if it does not say; NULL: it is the user's own file */
	bool tampered;    /* perhaps, on its way: what cannot be signed is refused */
	bool exposed;     /* likewise, as the user wants: what is not signed is unverified */
	/* Opens an appc image's signature: the descriptor, or -errno and @e. NULL: beside it. */
	int (*signature)(void *ctx, struct err *e);
	void *ctx;
};

/* Frees what it owns. */
static inline void found_deinit(struct found *f)
{
	import_free(TAKE_PTR(f->import));
}

#endif
