/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of a pod's apps, as stage1 writes them (lib/wire/crilog.h): read from their beginning,
 * or from near their end, and followed while the pod runs.
 */
#ifndef HOST_POD_LOGS_H
#define HOST_POD_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pod/pod.h"
#include "lib/base/err.h"
#include "lib/wire/crilog.h"

#define LOGS_POLL_MS 50

struct logs_request {
	const char *app;
	int64_t since_ns; /* CLOCK_REALTIME; 0: from the beginning */
	int64_t tail;     /* so many lines, as far as they are there; negative: all */
	bool follow;      /* until the pod is over */
};

/* Takes one record. 0, or -errno, which ends the reading. */
typedef int (*logs_fn)(void *ctx, const struct crilog_record *r);

/*
 * Gives the records of an app of the pod @p of @ps to @fn(@ctx), oldest first. Lines that are no
 * records are left out. *@p is opened anew as the pod moves on. 0; -ENOENT if there is no log; what
 * @fn returned, without @e; or -errno and @e.
 */
int pod_logs(struct pods *ps, struct pod *p, const struct logs_request *q, logs_fn fn, void *ctx,
	     struct err *e);

#endif
