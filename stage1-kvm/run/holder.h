/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of a pod, found from outside. It is who wrote the file pid, and it holds the pod's lock
 * for its life. So a process with that number is the supervisor if the lock is still held after we got
 * hold of the process.
 */
#ifndef STAGE1_KVM_RUN_HOLDER_H
#define STAGE1_KVM_RUN_HOLDER_H

#include <sys/types.h>

/*
 * The pidfd of the supervisor of the pod in directory @pod_fd, its number in *ret_pid. One that has just
 * begun is waited for. -ESRCH if it has ended, or -errno.
 */
int holder_open(int pod_fd, pid_t *ret_pid);

#endif
