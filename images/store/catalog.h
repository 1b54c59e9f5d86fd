/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in the store: records by image, references by text. Readers need no lock: files appear
 * and change by rename(2). Whoever adds or removes images holds the lock of store_lock_images().
 */
#ifndef IMAGES_STORE_CATALOG_H
#define IMAGES_STORE_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/store/record.h"
#include "images/store/ref.h"
#include "images/store/store.h"

/* Most records that are looked at: a node has tens to hundreds of images. */
#define CATALOG_IMAGES_MAX ((size_t)65536)

/* The record of @id. 0 (*ret is to be deinitialised), STORE_MISSING, or -errno with @e. */
int catalog_get(const struct store *s, const struct digest *id, struct record *ret, struct err *e);

/* Writes a record, which is there after a power cut, too. 0 or -errno with @e. */
int catalog_put(const struct store *s, const struct record *r, struct err *e);

/*
 * Adds @name to those of the image @id, and makes it stand for the image. Takes the lock of the
 * images. 0, STORE_MISSING, or -errno with @e.
 */
int catalog_add_name(const struct store *s, const struct digest *id, const char *name,
		     struct err *e);

/* True if there is a record for @id. */
bool catalog_has_record(const struct store *s, const struct digest *id);

/* True if the image @id is in the store with all its blobs. */
bool catalog_has_image(const struct store *s, const struct digest *id);

/* Makes "name:@name" stand for the image @id. Results as catalog_refer(). */
int catalog_put_name(const struct store *s, const struct digest *id, const char *name,
		     struct err *e);

/*
 * True if @name, which the record of @id has, does not stand for another image by now, be that one
 * in the store or gone: a name that has moved does not come back when its new image is removed.
 */
bool catalog_stands_for(const struct store *s, const char *name, const struct digest *id);

/*
 * Removes a record: the image is gone then, and after catalog_sync() for good. It may not be there.
 * 0 or -errno with @e.
 */
int catalog_remove(const struct store *s, const struct digest *id, struct err *e);

/* After that a power cut neither loses a record nor brings one back. 0 or -errno with @e. */
int catalog_sync(const struct store *s, struct err *e);

/* Notes that the image @id is being used now; whoever may not write to the store notes nothing. */
void catalog_use(const struct store *s, const struct digest *id);

/* When the image @id was last used, in nanoseconds since the epoch; 0 if that is unknown. */
int64_t catalog_last_use(const struct store *s, const struct digest *id);

/* Bytes of the image's rendered file; 0 if it is not rendered. */
uint64_t catalog_rendered_size(const struct store *s, const struct record *r);

/* What @text stands for. 0 or STORE_MISSING, also if the file is unreadable: it only saves work. */
int catalog_get_ref(const struct store *s, const char *text, struct ref *ret);

/* Writes a reference, unless it is there as it is. 0 or -errno. */
int catalog_put_ref(const struct store *s, const struct ref *r);

/*
 * Makes the text of @r stand for its image. If it does already, a failure is none: what else the
 * reference says only saves work. 0, or -errno with @e; then it stands for what it stood for.
 */
int catalog_refer(const struct store *s, const struct ref *r, struct err *e);

/* The ids of all images, sorted. */
struct catalog_list {
	struct digest *ids; /* owned */
	size_t n;
};

#define CATALOG_LIST_INIT ((struct catalog_list){ 0 })

/* Frees the ids. Accepts NULL. */
void catalog_list_deinit(struct catalog_list *l);

/* Lists the images. 0, or -errno with @e (-E2BIG beyond CATALOG_IMAGES_MAX). */
int catalog_list(const struct store *s, struct catalog_list *ret, struct err *e);

/*
 * Calls @fn for every reference, with the name of its file and what it says, or NULL if it is
 * damaged; those that we may not or cannot read now are left out. 0, or the first result of @fn
 * that is not 0, or -errno.
 */
int catalog_each_ref(const struct store *s,
		     int (*fn)(void *ctx, const char *file, const struct ref *ref), void *ctx);

/*
 * Rewrites index.json of the layout from the records, so that other programs see the images under
 * their names, each name once. Derived: nothing here reads it. 0 or -errno.
 */
int catalog_write_index(const struct store *s);

#endif
