/* SPDX-License-Identifier: Apache-2.0 */
/* Images behind http and https URLs: how they come here. */
#ifndef IMAGES_FETCH_URL_H
#define IMAGES_FETCH_URL_H

#include <stdbool.h>

#include "images/known/url.h"
#include "lib/base/err.h"

/*
 * Asks the server: u->found is FOUND_FILE, an archive of any kind, whose import is begun;
 * FOUND_CURRENT if the server says that what was fetched is still what there is; FOUND_KNOWN if
 * somebody else fetched it meanwhile. A download that breaks off is gone on with by the next one.
 * @nested: the caller has another import (import_begin_nested()). 0 or -errno with @e.
 */
int url_get(struct url *u, bool nested, struct err *e);

#endif
