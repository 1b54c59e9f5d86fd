/* SPDX-License-Identifier: Apache-2.0 */
/* `husk run`: from images to a running stage1. */
#ifndef HOST_POD_RUN_H
#define HOST_POD_RUN_H

#include "host/launch/stage1.h"
#include "host/manifest/request.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"

/* Return code beside -errno. RUN_DETACHED: the pod is up, in the background. */
enum {
	RUN_DETACHED = 1,
};

/*
 * Opens the images, makes the pod below the data directory @data_fd (@data_path is for messages)
 * and becomes the run entrypoint of @stage1, which inherits the pod's lock. Returns only on
 * failure, with -errno and @e: no pod is left then, unless the failure was the last step, the exec;
 * in that case the pod has exited. A detached pod is run by another process: RUN_DETACHED with the
 * UUID in *ret as soon as it is up, -errno and @e if it ended before.
 */
int pod_run(const struct run_request *q, int data_fd, const char *data_path,
	    const struct stage1 *stage1, struct uuid *ret, struct err *e);

/*
 * The same up to the point where the pod is complete: it waits in phase prepared for
 * pod_run_prepared(), and survives a power cut. What belongs to the run only is not looked at. 0
 * with the UUID in *ret, or -errno and @e; nothing is left then.
 */
int pod_prepare_only(const struct run_request *q, int data_fd, const char *data_path,
		     const struct stage1 *stage1, struct uuid *ret, struct err *e);

/*
 * Runs the pod @p of @ps as pod_run() does. Of @q only what belongs to the run is looked at. Of
 * several who try, one wins; the others get -EINVAL and @e, as for a pod that is not prepared.
 * Returns as pod_run() does.
 */
int pod_run_prepared(const struct run_request *q, struct pods *ps, struct pod *p,
		     const char *data_path, const struct stage1 *stage1, struct err *e);

#endif
