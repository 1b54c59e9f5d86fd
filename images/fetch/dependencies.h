/* SPDX-License-Identifier: Apache-2.0 */
/* An image, and all that it is on top of, brought into the store. */
#ifndef IMAGES_FETCH_DEPENDENCIES_H
#define IMAGES_FETCH_DEPENDENCIES_H

#include <stddef.h>

#include "images/fetch/importer.h"
#include "lib/base/err.h"

/* Levels of dependencies; real images have one or two. */
#define DEPENDENCIES_DEPTH_MAX ((size_t)16)

/*
 * Finds in the store, or gets, what the opened image @top depends on, and that depends on, level by
 * level as rkt does, and then imports all, the lowest first. An image that comes in several places
 * is got once. @url is where @top came from, or NULL. Nothing of it is in the store unless all of
 * what it is on top of is. 0, STORE_MISSING if somebody removed one meanwhile, or -errno with @e.
 */
int dependencies_bring(struct importer *top, const char *url, struct err *e);

#endif
