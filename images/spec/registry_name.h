/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of images in registries: "debian", "quay.io/coreos/etcd:v3.5",
 * "localhost:5000/x@sha256:...". Pure.
 */
#ifndef IMAGES_SPEC_REGISTRY_NAME_H
#define IMAGES_SPEC_REGISTRY_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "images/spec/digest.h"
#include "lib/base/err.h"

/* Longest "REGISTRY/REPOSITORY": the limit of the reference grammar, which all clients share. */
#define REGISTRY_NAME_MAX ((size_t)255)
/* Longest tag: the distribution-spec's limit. */
#define REGISTRY_TAG_MAX ((size_t)128)
/* Longest "REGISTRY/REPOSITORY:TAG@sha256:HEX": the sum of its parts. */
#define REGISTRY_TEXT_MAX \
	(REGISTRY_NAME_MAX + 1 + REGISTRY_TAG_MAX + sizeof("@sha256:") - 1 + DIGEST_HEX_LEN)

#define REGISTRY_DEFAULT     "docker.io" /* where names without a registry are */
#define REGISTRY_DEFAULT_TAG "latest"

struct registry_name {
	char registry[REGISTRY_NAME_MAX + 1]; /* host, or host:port, in lower case */
	char repository[REGISTRY_NAME_MAX + 1];
	char tag[REGISTRY_TAG_MAX + 1]; /* "" if there is a digest and no tag */
	struct digest digest;           /* "" if there is none; it decides where there is one */
};

/*
 * Takes apart what follows "docker://" or "oci://": [REGISTRY/]REPOSITORY[:TAG][@sha256:HEX], in
 * the grammar of OCI distribution-spec 1.1 ("Pull") for repositories and tags, and of DNS names or
 * IPv4 addresses with an optional port for registries. As docker does, the first part is a registry
 * only if it has a dot or a colon or is "localhost"; else it is a repository of docker.io, and one
 * without a slash is "library/NAME" there. IPv6 addresses are refused, since skopeo refuses them.
 * 0, or -EINVAL/-ENAMETOOLONG/-EOPNOTSUPP with @e, which names @text; *ret is written only on 0.
 */
int registry_name_parse(const char *text, struct registry_name *ret, struct err *e);

/* "docker.io/library/debian:latest": every part said; parsing it yields the same name again. */
void registry_name_text(const struct registry_name *n, char out[REGISTRY_TEXT_MAX + 1]);

/*
 * The one spelling of @text, with or without "docker://", "docker:" or "oci://" before it: what the
 * function above writes, or @text itself if it is not a name of a registry. True if it is one.
 */
bool registry_name_normal(const char *text, char out[REGISTRY_TEXT_MAX + 1]);

/* What stands behind one of these schemes; @text itself if there is none. */
const char *registry_name_bare(const char *text);

/*
 * The same as the operand of skopeo(1): "docker://" and the name by @digest; if that is NULL by the
 * name's own digest, by its tag if it has none. Never by both, skopeo refuses that.
 */
#define REGISTRY_OPERAND_MAX (sizeof("docker://") - 1 + REGISTRY_TEXT_MAX) /* prefix, text */
void registry_name_operand(const struct registry_name *n, const struct digest *digest,
			   char out[REGISTRY_OPERAND_MAX + 1]);

#endif
