/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups (version 2): one for each app, "NUMBER" below a directory that apps do not see.
 * Files of the kernel only: nothing here waits for a disk. Counters may wait for locks that busy
 * apps hold.
 */
#ifndef GUEST_AGENT_APP_CGROUP_H
#define GUEST_AGENT_APP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/fault.h"

struct cgroup_limits;

/*
 * Mounts the hierarchy on @dir, which is created, with all controllers that apps need, and makes
 * group 1, so that the first app finds it. 0, also if it is mounted, or -errno; then there is no
 * @dir.
 */
int cgroup_mount(const char *dir);

/*
 * Makes group @number below @dir, or takes the one that cgroup_mount() has made, and sets @limits.
 * *ret becomes its directory, or -EBADF if there are no groups and no limits. A NULL @dir means
 * that there are no groups. 0, or FAULT_SET if the limits cannot be held.
 */
int cgroup_make(const char *dir, unsigned number, const struct cgroup_limits *limits, int *ret,
		struct fault *f);

/* The directory of group @number, which was made; -EBADF without groups, or -errno. */
int cgroup_open(const char *dir, unsigned number);

/* True if the kernel has killed a process of the group because memory was short. */
bool cgroup_had_oom_kill(const char *dir, unsigned number);

/*
 * What group @number counts, -1 for what the kernel does not count and for limits that there are
 * none of. Without groups all is -1. May block as long as the kernel likes: never in the agent
 * itself.
 */
void cgroup_stats(const char *dir, unsigned number, struct agent_app_stats *ret);

/* Removes the group, in which no process is any more. */
void cgroup_remove(const char *dir, unsigned number);

#endif
