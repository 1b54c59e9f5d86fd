/* SPDX-License-Identifier: Apache-2.0 */
/* What the user typed to name an image, taken apart. */
#ifndef IMAGES_KNOWN_REFERENCE_H
#define IMAGES_KNOWN_REFERENCE_H

#include <limits.h>
#include <stdbool.h>

#include "images/spec/config.h"
#include "lib/base/err.h"

enum reference_type {
	REFERENCE_ANY, /* a path: the content decides */
	REFERENCE_OCI_DIR,
	REFERENCE_OCI_ARCHIVE,
	REFERENCE_DOCKER_ARCHIVE,
	REFERENCE_ROOTFS,   /* a path: a root file system, as a directory or a tar */
	REFERENCE_REGISTRY, /* what stands behind docker:// or oci:// */
	REFERENCE_URL,      /* http:// or https:// */
	REFERENCE_ID,       /* "sha256-HEX" or "sha512-HEX", may be cut */
	REFERENCE_NAME,     /* what an image of the store is called, or an appc name */
};

struct reference {
	enum reference_type type;
	char path[PATH_MAX];           /* of the types up to REFERENCE_ROOTFS, else "" */
	char name[IMAGE_NAME_MAX + 1]; /* behind the path; "" if none was given */
	const char *text; /* of the others: without docker:// and the like, else whole; borrowed */
};

/*
 * Takes a reference apart:
 *
 *   PATH                      an OCI layout (directory, or tar of one), a docker archive with
 *                             exactly one image: what it is, is found from its content
 *   PATH:NAME                 the image NAME of several: a tag of an OCI layout, a repository tag
 *                             ("debian:12") of a docker archive, or a digest "sha256:HEX"
 *   file:PATH[:NAME]          the same
 *   oci:DIR[:NAME]            as skopeo(1) writes them
 *   oci-archive:FILE[:NAME]
 *   docker-archive:FILE[:NAME]
 *   rootfs:PATH               a directory or a tar
 *   docker://NAME, docker:NAME, oci://NAME     an image of a registry
 *   http://..., https://...   a file somewhere
 *   sha256-HEX, sha512-HEX    an image of the store, also if a file is called so
 *   anything else             a name; but what is absolute, has "./" in it or ends in ".aci" is a path
 *
 * Both path and name may contain colons, so the shortest prefix for which @exists is true is the
 * path; if there is none, the path ends at the first colon. @text must outlive *ret. 0, or
 * -EINVAL/-ENOENT/-ENAMETOOLONG with @e.
 */
int reference_parse(const char *text, bool (*exists)(const char *path), struct reference *ret,
		    struct err *e);

#endif
