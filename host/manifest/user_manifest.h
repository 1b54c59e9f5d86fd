/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod manifest as the whole request: `husk run --pod-manifest`.
 *
 * appc specification 0.8.11, "Pod Manifest Schema". The name of an app's image is a reference as on
 * the command line, and its id, if there is one, must be that of the image found. An app section
 * counts instead of the image's configuration. Isolators are those of lib/wire/isolators.h. What
 * asks for something that this husk cannot do (other isolators and event handlers,
 * isolators of the pod) is refused, not ignored; annotations have no effect. A port of the pod
 * without podPort is that of the app port with its name.
 */
#ifndef HOST_MANIFEST_USER_MANIFEST_H
#define HOST_MANIFEST_USER_MANIFEST_H

#include <stddef.h>

#include "host/manifest/request.h"
#include "lib/base/err.h"

/*
 * Adds the apps of the manifest of @len bytes to @q, which has none, and which owns the strings
 * from then on. 0, or -EBADMSG, -EOPNOTSUPP, -ENOMEM and @e naming the member that is wrong.
 */
int declare_parse(const char *text, size_t len, struct run_request *q, struct err *e);

#endif
