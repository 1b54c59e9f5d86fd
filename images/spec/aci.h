/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of an appc image (appc spec 0.8.11, "Image Manifest Schema"): bytes in, checked
 * structure out.
 *
 * Unknown fields are ignored; what asks for something that would be dangerous to ignore is not.
 * Isolators, supplementary groups and event handlers are looked at when the image is run
 * (host/manifest/appc_app.h).
 */
#ifndef IMAGES_SPEC_ACI_H
#define IMAGES_SPEC_ACI_H

#include <stddef.h>

#include "images/spec/acname.h"
#include "images/spec/config.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define ACI_JSON_MAX         ((size_t)4 * 1024 * 1024) /* as for OCI documents; a whitelist may be long */
#define ACI_DEPENDENCIES_MAX ((size_t)64)              /* of one image; real ones have one or two */
#define ACI_WHITELIST_MAX    ((size_t)65536)           /* paths */
#define ACI_KEY_LEN          ((size_t)128)             /* hex digits of SHA-512 */

/* An image that this one is on top of. */
struct aci_dependency {
	struct acname name;        /* with the labels that it must have */
	char key[ACI_KEY_LEN + 1]; /* hex digits that its key must begin with; "" if any will do */
};

struct aci_manifest {
	struct acname name; /* with all labels */
	struct strv exec;   /* empty if the image is not an app */
	struct strv env;    /* "NAME=value" */
	char working_dir[IMAGE_PATH_MAX + 1];
	char user[IMAGE_USER_MAX + 1];       /* "USER:GROUP", or "" */
	struct aci_dependency *dependencies; /* owned; the first is the lowest */
	size_t n_dependencies;
	struct strv whitelist; /* absolute paths; empty: all */
};

/* An empty manifest, and freeing what one holds. */
void aci_manifest_init(struct aci_manifest *m);
void aci_manifest_deinit(struct aci_manifest *m);

/*
 * Fills an initialised @ret from @len bytes of JSON. 0, or -EBADMSG/-EOPNOTSUPP/-E2BIG/-ENOMEM with
 * @e saying which field is wrong.
 */
int aci_manifest_parse(const char *text, size_t len, struct aci_manifest *ret, struct err *e);

/*
 * Whether an app of this image runs on this machine: labels os and arch, which it must have. What
 * is only built upon may do without. 0, or -EOPNOTSUPP and @e in the words of rkt.
 */
int aci_check_platform(const struct aci_manifest *m, struct err *e);

#endif
