/* SPDX-License-Identifier: Apache-2.0 */
/* The PID namespace of an app: its first process, and how others get into it. */
#ifndef GUEST_AGENT_APP_PIDNS_H
#define GUEST_AGENT_APP_PIDNS_H

#include <sys/types.h>

/*
 * Forks the first process of a new PID namespace, a child of the caller. It does nothing and ends
 * only by SIGKILL, which ends everything in the namespace; it can be reaped when all others in
 * there have been. Its root directory is @empty_dir, which is created if it is missing. 0 or
 * -errno; *ret is the caller's.
 */
int pidns_new(const char *empty_dir, pid_t *ret);

/*
 * Forks like fork(2) a child of the caller that is the first process of a new PID namespace, in the
 * control group whose directory is @cgroup_fd, unless that is negative. Its number, 0 in the child,
 * or -errno as pidns_fork() has them. The caller must have one thread.
 */
pid_t pidns_fork_first(int cgroup_fd);

/*
 * Forks like fork(2) a child of the caller in the namespace whose first process is @init, not
 * reaped yet, and in the control group whose directory is @cgroup_fd, unless that is negative.
 * Yields the child's number, 0 in the child, or -errno: -ESRCH if the namespace has ended (-ENOMEM
 * while it ends), -EAGAIN also if the group has as many processes as it may have. The caller must
 * have one thread.
 */
pid_t pidns_fork(pid_t init, int cgroup_fd);

#endif
