/* SPDX-License-Identifier: Apache-2.0 */
/* What is left on disk of the apps of a pod that has ended. */
#ifndef HOST_POD_DISKS_H
#define HOST_POD_DISKS_H

#include <stdbool.h>

#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"

/* True if the pod has ended and nobody deletes it: what its apps have written stays as it is. */
bool pod_is_final(const struct pod *p);

/*
 * Opens read-only the image of app @app of the pod, and the file of @s with what all of its apps
 * have changed, both regular files in the pod's directory. 0 with the descriptors, which are the
 * caller's; -EOPNOTSUPP if @s does not say where that file is; -ENOENT if it is not there; -errno;
 * and @e. Of what failed the descriptors stay as they are.
 */
int pod_open_disks(const struct pod *p, const struct stage1 *s, const char *app, int *ret_image,
		   int *ret_changes, struct err *e);

#endif
