/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of a pod, found from outside. It wrote its number into the file pid, and it holds
 * the pod's lock for its life. The number may be anybody's by now, or have been written by somebody
 * else: only a process that has the locked descriptor is the supervisor.
 */
#ifndef STAGE1_POD_FIND_SUPERVISOR_H
#define STAGE1_POD_FIND_SUPERVISOR_H

#include <sys/types.h>

#include "lib/base/err.h"

/*
 * The pidfd of the supervisor of the pod in directory @pod_fd, its number in *ret_pid. One that has
 * just begun is waited for. -errno and @e: -ESRCH if it has ended, -EPERM if the process of that
 * number is another.
 */
int find_supervisor(int pod_fd, pid_t *ret_pid, struct err *e);

#endif
