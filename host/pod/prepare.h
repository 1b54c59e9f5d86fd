/* SPDX-License-Identifier: Apache-2.0 */
/* Filling the directory of a new pod. */
#ifndef HOST_POD_PREPARE_H
#define HOST_POD_PREPARE_H

#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "images/images.h"
#include "lib/wire/pod_manifest.h"

/*
 * Writes everything that stage1 and the other commands expect (lib/wire/stage1.h) into the pod @p,
 * which is in POD_PREPARE and locked by us: apps/NAME/rootfs for each app of @m, a hard link to
 * images[i]; status/; pod-created; stage1.json for @stage1; at last the manifest. All of it is
 * synced. 0 or -errno and @e.
 */
int pod_prepare(const struct pod *p, const struct pod_manifest *m, struct image *const *images,
		const struct stage1 *stage1, struct err *e);

/*
 * Makes apps/@name with @image in the pod @p, whatever its phase. 0, or -errno and @e: -EEXIST if
 * it is there.
 */
int pod_prepare_app(const struct pod *p, const char *name, const struct image *image,
		    struct err *e);

/*
 * Puts another manifest in place of that of @p: a reader finds the one or the other. 0, or -errno
 * and @e.
 */
int pod_replace_manifest(const struct pod *p, const struct pod_manifest *m, struct err *e);

#endif
