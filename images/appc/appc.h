/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of the app container specification (appc spec 0.8.11), which rkt made of its own: the door
 * to what husk knows of them. Where one is: discovery.h. What it is called and says of itself:
 * spec/. Whether it may be used: here, and who is trusted: trust/. What its apps ask for beside
 * what all do: host/manifest/appc_app.h.
 */
#ifndef IMAGES_APPC_APPC_H
#define IMAGES_APPC_APPC_H

#include "images/appc/trust/key.h"
#include "images/fetch/common/options.h"
#include "images/spec/aci.h"
#include "lib/base/err.h"

/* Largest file with detached signatures. */
#define APPC_SIGNATURE_MAX TRUST_SIGNATURE_MAX

/* An image that somebody has found. Everything is borrowed. */
struct appc_image {
	const struct aci_manifest *manifest;
	int file;         /* the archive as it came: a regular file, not one of 0 to 2 */
	const char *path; /* of it */
	/* Opens its signature: the descriptor, or -errno and @e. NULL: PATH.asc. */
	int (*signature)(void *ctx, struct err *e);
	void *ctx;
};

/*
 * Checks that the image is the one that @q expects, and, unless q->options says that this is not
 * wanted, that somebody who is trusted with its name has signed the file. gpg works in a private
 * directory below @tmp_dir. 0 or -errno with @e.
 */
int appc_check(const struct appc_image *i, const struct fetch_request *q, const char *tmp_dir,
	       struct err *e);

/* What the image is called: its name, and its version if it has one. */
void appc_name(const struct aci_manifest *m, char out[IMAGE_NAME_MAX + 1]);

#endif
