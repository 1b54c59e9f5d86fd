/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appc images: names, signatures and blobs (appc spec 0.8.11, "App Container Image").
 */
#ifndef HOST_FETCH_APPC_H
#define HOST_FETCH_APPC_H

#include <stddef.h>

#include "host/appc/spec/aci.h"
#include "host/fetch/common/options.h"
#include "host/fetch/found.h"
#include "host/render/span.h"
#include "host/store/store.h"

/*
 * Checks that the image @m is the one that is expected, and, unless q->options says that this is
 * not wanted, that somebody who is trusted with its name has signed the file @fd (as it came: a
 * regular file, not one of 0 to 2), and names it: f->image.name. 0 or -errno with @e.
 */
int appc_check(struct store *s, const struct aci_manifest *m, int fd, struct found *f,
	       const struct fetch_request *q, struct err *e);

/* An image archive. Everything is borrowed. */
struct appc_archive {
	const char *manifest; /* text of its file "manifest" */
	size_t manifest_len;
	struct span tar; /* not compressed */
};

/*
 * Makes blobs of a layer, a configuration and a manifest of @a in @im: *ret_key is the archive's
 * key, *ret_id the digest of the manifest. @what is told with the progress. 0 or -errno with @e.
 */
int appc_make_blobs(struct import *im, const struct appc_archive *a, const struct fetch_options *o,
		    const char *what, char ret_key[ACI_KEY_LEN + 1], struct digest *ret_id,
		    struct err *e);

#endif
