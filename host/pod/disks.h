/* SPDX-License-Identifier: Apache-2.0 */
/* What is left on disk of the apps of a pod that has ended. */
#ifndef HOST_POD_DISKS_H
#define HOST_POD_DISKS_H

#include <errno.h>
#include <stdbool.h>

#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"

/* True if the pod has ended and nobody deletes it: what its apps have written stays as it is. */
bool pod_is_final(const struct pod *p);

/* Descriptors, of which one of the last two is -EBADF. */
struct pod_disks {
	int image;   /* the app's, a regular file, read-only */
	int changes; /* what all apps have changed, likewise */
	int upper;   /* what the app has changed: a directory, opened with O_PATH */
};

#define POD_DISKS_INIT ((struct pod_disks){ -EBADF, -EBADF, -EBADF })

/*
 * Opens the image of app @app of the pod, and what it has changed, where @s says that that is, all
 * in the pod's directory. 0 with the descriptors, which are the caller's; -EOPNOTSUPP if @s does
 * not say it; -ENOENT if it is not there; -errno; and @e. If that fails, *ret stays as it is.
 */
int pod_open_disks(const struct pod *p, const struct stage1 *s, const char *app,
		   struct pod_disks *ret, struct err *e);

#endif
