/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images by what the user called them: found in the store, or brought there first.
 */
#ifndef IMAGES_IMAGES_H
#define IMAGES_IMAGES_H

#include "images/fetch/common/options.h"
#include "images/store/image.h"
#include "images/store/store.h"
#include "lib/base/err.h"

/*
 * Opens the image, which is brought into the store and rendered if that has not been done: that
 * loads what it takes (load/images_module.h). What @q points to is borrowed for the call. The
 * calling process must have a single thread and must not have SIGCHLD ignored. 0, or -errno with
 * @e: one line that begins with `image "..."`.
 */
int fetch_image(struct store *s, const struct fetch_request *q, struct image **ret, struct err *e);

/* Loads what reads, fetches and writes images, to see if it is there. 0, or -errno with @e. */
int images_check_module(struct err *e);

#endif
