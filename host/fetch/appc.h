/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appc images: signature, dependencies, import (appc spec 0.8.11, "App Container Image").
 */
#ifndef HOST_FETCH_APPC_H
#define HOST_FETCH_APPC_H

#include <stddef.h>

#include "host/fetch/fetch.h"
#include "host/fetch/local.h"
#include "host/render/span.h"
#include "host/store/import.h"

/* An image archive, as somebody found it. Everything is borrowed. */
struct appc_archive {
	const char *manifest; /* text of its file "manifest" */
	size_t manifest_len;
	struct span tar; /* not compressed */
	int file; /* as it came, which is what was signed: a regular file, not one of 0 to 2 */
	/* Opens the detached signature, a regular file. The caller's descriptor, or -errno and @e. */
	int (*signature)(void *ctx, struct err *e);
	void *ctx;
};

/*
 * Checks the signature of the archive @a, unless q->options says that this is not wanted, finds or fetches
 * what it depends on, and puts it into the store through @im. 0 or -errno with @e.
 */
int appc_import(struct store *s, struct import *im, const struct appc_archive *a,
		const struct fetch_request *q, struct fetched *ret, struct err *e);

/*
 * The image that is called @text, an appc name: from the store as q->policy says, else from where discovery
 * finds it. 0 or -errno with @e.
 */
int appc_fetch(struct store *s, const char *text, const struct fetch_request *q,
	       struct fetched *ret, struct err *e);

/* True if @text can be looked for in the network: an appc name that begins with a host. */
bool appc_is_remote(const char *text);

#endif
