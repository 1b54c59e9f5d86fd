/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a pod, from outside: there is no daemon to ask, so its state is looked at again and
 * again.
 */
#ifndef HOST_POD_WAIT_H
#define HOST_POD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pod/pod.h"

#define POD_WAIT_POLL_MS 20

/* 0 if the pod runs, as far as was seen of it; else -EINVAL and @e. */
int pod_need_running(const struct pod *p, struct err *e);

/* True if all apps of the pod have been started, now or in the past. */
bool pod_is_ready(const struct pod *p);

/*
 * Waits until the pod @p of @ps is over (finished, aborted, garbage). *@p is opened anew as the pod
 * moves on. @deadline_ns is CLOCK_MONOTONIC. 0, -ETIMEDOUT, -ENOENT if it was removed meanwhile,
 * -errno; @e says which.
 */
int pod_wait_finished(struct pods *ps, struct pod *p, int64_t deadline_ns, struct err *e);

/*
 * Waits until all apps of the pod have been started. As above; also -EINVAL if the pod is over and
 * never came so far.
 */
int pod_wait_ready(struct pods *ps, struct pod *p, int64_t deadline_ns, struct err *e);

#endif
