/* SPDX-License-Identifier: Apache-2.0 */
/* Images from registries. */
#ifndef HOST_FETCH_REMOTE_H
#define HOST_FETCH_REMOTE_H

#include "host/fetch/fetch.h"
#include "host/fetch/local.h"

/*
 * Brings the image @text (what stands behind docker://) into the store, as q->policy says. With PULL_UPDATE
 * the registry is asked what the name stands for, and only what is new is transferred; with PULL_NEW only if
 * the store has nothing under this name. 0, or -errno with @e (-ENOENT with PULL_NEVER if it is not there).
 */
int remote_fetch(struct store *s, const char *text, const struct fetch_request *q,
		 struct fetched *ret, struct err *e);

/* True if @text is the name of an image of a registry that the store has. */
bool remote_is_known(struct store *s, const char *text);

#endif
