/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images by what the user called them: found in the store, or brought there first.
 */
#ifndef HOST_FETCH_FETCH_H
#define HOST_FETCH_FETCH_H

#include "host/fetch/options.h"
#include "host/image/acname.h"
#include "host/store/image.h"
#include "host/store/store.h"
#include "lib/base/err.h"

/* What to do about what is in the store already. */
enum pull_policy {
	PULL_NEVER,  /* use only that */
	PULL_NEW,    /* use that, else fetch */
	PULL_UPDATE, /* ask whether there is something newer */
	PULL_POLICIES,
};

/* Reads "never", "new" or "update". 0, or -EINVAL and @e. */
int pull_policy_parse(const char *text, enum pull_policy *ret, struct err *e);

#define FETCH_DEPTH_MAX 16 /* levels of dependencies; real images have one or two */

/* What is being fetched, the innermost first: an image of which these are to be on top cannot be one of them. */
struct fetch_chain {
	const char *url;
	const struct fetch_chain *above;
};

struct fetch_request {
	const char *reference; /* host/fetch/reference.h has the forms */
	bool is_name;          /* it is a name or an ID, whatever files there are */
	const char
		*signature; /* file with the detached signature of an appc image; NULL: beside it */
	int depth;          /* of dependencies; 0 */
	const struct fetch_chain *chain; /* of dependencies; NULL */
	const struct acname
		*expected;       /* what must be an appc image, and called so; NULL: anything */
	enum pull_policy policy; /* files and directories are read in any case, as they are here */
	bool fetch_only; /* whoever may not render images gets it without its rendered file */
	struct fetch_options options;
};

/*
 * Opens the image, after fetching it if need be; what @q points to is borrowed for the call. The calling
 * process must have a single thread and must not have SIGCHLD ignored. 0, or -errno with @e: one line that
 * begins with `image "..."`.
 */
int fetch_image(struct store *s, const struct fetch_request *q, struct image **ret, struct err *e);

#endif
