/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an appc image wants for its app beside what every image says (appc specification 0.8.11,
 * "Image Manifest Schema"): isolators, supplementary groups, event handlers; and which ports
 * it listens on.
 *
 * The image proposes. What the user says of an isolator replaces the image's, and the image's
 * rival, so that --caps-retain replaces a remove set; --supplementary-gids replaces the image's
 * groups. What this husk cannot do is refused by its name. Mount points have no effect.
 */
#ifndef HOST_MANIFEST_APPC_APP_H
#define HOST_MANIFEST_APPC_APP_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * Adds to @app, which compose_app() has made, what the image manifest of @len bytes wants. 0, or
 * -EBADMSG, -EOPNOTSUPP, -EINVAL, -E2BIG, -ENOMEM with @e naming what is wrong.
 */
int wishes_apply(const char *manifest, size_t len, struct pod_app *app, struct err *e);

#endif
