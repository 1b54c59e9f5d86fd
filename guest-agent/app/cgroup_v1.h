/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of version 1: a directory that holds a group in each of several hierarchies,
 * "memory", "cpu", "cpuacct", "pids" and "blkio", and a group "NUMBER" for each app below each of
 * them. Two of them may be one hierarchy, and some may be missing. For cgroup.h, whose functions
 * these are for such a directory.
 *
 * What version 2 does and this cannot:
 *   A process is not born in its groups, it enters them (cgroup_v1_enter()).
 *   When memory is short, the kernel kills one process of an app, not all of them. An app whose
 *   main process survives that goes on, without the other.
 *   Apps do not see their groups.
 *   Processes cannot be made to stand still.
 */
#ifndef GUEST_AGENT_APP_CGROUP_V1_H
#define GUEST_AGENT_APP_CGROUP_V1_H

#include <stdbool.h>

#include "guest-agent/fault.h"

#define CGROUP_V1_DIR_MAX 200 /* bytes of the directory's path */

struct cgroup_limits;

/* True if @dir holds at least one of the hierarchies. */
bool cgroup_v1_is_there(const char *dir);

/*
 * Makes group @number in each hierarchy of @dir and sets @limits. 0, or FAULT_SET if the limits
 * cannot be held; then nothing is left of the group.
 */
int cgroup_v1_make(const char *dir, unsigned number, const struct cgroup_limits *limits,
		   struct fault *f);

/*
 * Sets those limits of group @number, which has @from, that differ in @to. 0, or FAULT_SET, with
 * AGENT_E_STATE if more memory is in use than it may be; then it has @from.
 */
int cgroup_v1_change(const char *dir, unsigned number, const struct cgroup_limits *from,
		     const struct cgroup_limits *to, struct fault *f);

/*
 * Moves the calling process, which has one thread, into group @number, which was made. 0, or
 * FAULT_SET, also if the group has more processes then than it may have: what enters is not held
 * back by the kernel.
 */
int cgroup_v1_enter(const char *dir, unsigned number, struct fault *f);

/* True if the kernel has killed a process of the group because memory was short. */
bool cgroup_v1_had_oom_kill(const char *dir, unsigned number);

/* Writes to *ret what group @number counts; the rest of it stays as it is. */
void cgroup_v1_stats(const char *dir, unsigned number, struct agent_app_stats *ret);

/* Opens the group @number in one of the hierarchies: it is the same in all. -errno. */
int cgroup_v1_open(const char *dir, unsigned number);

/* Removes the group, in which no process is any more. */
void cgroup_v1_remove(const char *dir, unsigned number);

#endif
