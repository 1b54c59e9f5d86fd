/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What skopeo(1) is told: arguments, environment, credentials. Pure, so that tests see every byte.
 */
#ifndef IMAGES_FETCH_SKOPEO_ARGS_H
#define IMAGES_FETCH_SKOPEO_ARGS_H

#include <stdbool.h>

#include "images/fetch/common/options.h"
#include "images/spec/registry_name.h"
#include "lib/base/auth.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Most arguments: the longest command has ten. */
#define SKOPEO_ARGS_MAX ((size_t)16)
/* Most variables of the environment: those by name, and more XDG_ ones than there are. */
#define SKOPEO_ENV_MAX ((size_t)64)
/* Longest credentials: user, password and the colon as base64, registry and braces around them. */
#define SKOPEO_AUTH_MAX (((size_t)2 * AUTH_SECRET_MAX + 1) * 4 / 3 + AUTH_HOST_MAX + 64)

/*
 * The descriptor on which skopeo finds its credentials, if husk has some: a file without a name, so
 * that they are in no directory, on no command line and in no environment.
 */
#define SKOPEO_AUTH_FD 3

/*
 * `skopeo inspect --raw`, which prints a manifest or index as the registry has it: that of @digest,
 * or that of @n if it is NULL. @auth: credentials come on SKOPEO_AUTH_FD. @ret is initialised by
 * the caller with SKOPEO_ARGS_MAX. 0, -ENOMEM.
 */
int skopeo_inspect_args(const struct registry_name *n, const struct digest *digest,
			const struct fetch_options *o, bool auth, struct strv *ret);

/*
 * `skopeo copy` of the manifest @digest and its blobs into the OCI layout that is the working
 * directory. Nothing is converted: what arrives has the digests that the registry says. The host's
 * containers-policy.json(5) decides about signatures, unless o->insecure_image. Others as above.
 */
int skopeo_copy_args(const struct registry_name *n, const struct digest *digest,
		     const struct fetch_options *o, bool auth, struct strv *ret);

/*
 * Those variables of @environ that skopeo needs: home and XDG directories, proxies, certificates,
 * credentials. @ret is initialised by the caller with SKOPEO_ENV_MAX. 0, -E2BIG, -ENOMEM.
 */
int skopeo_env(char *const *environment, struct strv *ret);

/* The credentials of @n among @auths (which may be NULL), or NULL. docker.io has several names. */
const struct auth *skopeo_auth_find(const struct auths *auths, const struct registry_name *n);

/*
 * Appends @auth as containers-auth.json(5) for @n to @out (initialised with SKOPEO_AUTH_MAX or
 * more). 0, or -EINVAL/-ENOMEM with @e.
 */
int skopeo_auth_json(const struct auth *auth, const struct registry_name *n, struct buf *out,
		     struct err *e);

#endif
