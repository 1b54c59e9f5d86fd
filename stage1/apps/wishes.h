/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an image may not decide about its app. Its isolators may narrow what the app can do
 * anywhere; they widen it only inside of a wall, a VM or a user namespace. Where root of the pod is
 * root of the host, whoever runs the app has to say it.
 */
#ifndef STAGE1_APPS_WISHES_H
#define STAGE1_APPS_WISHES_H

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * Whether the wishes of @app's image (isolators_is_wish()) stay within what an app has by default:
 * capabilities, system calls, its place among those that the kernel kills first, its resource
 * limits. 0, or -EPERM and @e, which names the first that does not, and the option by which it is
 * granted; -EINVAL if a name is not known.
 */
int wishes_check(const struct pod_app *app, struct err *e);

#endif
