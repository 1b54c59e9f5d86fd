/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door to images/: what others use of it is here, and they include nothing else.
 *
 *   the store       store/store.h opens it, as store/settings.h says; find.h knows what people
 *                   call an image, list.h lists them, collect.h removes them
 *   one image       store/image.h: opened, verified, repaired, linked into a pod
 *   brought here    fetch_image(), with a request of fetch/common/options.h
 *   written out     export/: export.h (an app of a pod, or an image, as an archive), copy.h (as it
 *                   came), extract.h (as a directory), describe.h (its appc manifest)
 *   keys            appc/keys.h (where they are offered), appc/trust/keystore.h (those trusted)
 *
 * Fetching, rendering, writing out and keys take the module, which is loaded by the first of them
 * (load/images_module.h); finding an image that is there, and all that is asked of the store, takes
 * nothing.
 */
#ifndef IMAGES_IMAGES_H
#define IMAGES_IMAGES_H

#include "images/appc/keys.h"
#include "images/appc/trust/keystore.h"
#include "images/export/copy.h"
#include "images/export/describe.h"
#include "images/export/export.h"
#include "images/export/extract.h"
#include "images/fetch/common/options.h"
#include "images/store/collect.h"
#include "images/store/find.h"
#include "images/store/image.h"
#include "images/store/list.h"
#include "images/store/settings.h"
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
