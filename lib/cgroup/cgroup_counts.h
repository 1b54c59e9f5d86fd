/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a control group have used, as the kernel counts it: cgroup-v2.rst, and of
 * the hierarchies of version 1 cgroup-v1/{memory,cpuacct,pids,blkio-controller}.rst.
 */
#ifndef LIB_CGROUP_CGROUP_COUNTS_H
#define LIB_CGROUP_CGROUP_COUNTS_H

#include <stdint.h>

#include "lib/cgroup/cgroup_limits.h"
#include "lib/wire/agent.h"

/* Reads all that there is of a group; what is not counted, and a limit that it has not, is -1. */
void cgroup_counts_read(const struct cgroup_controllers *c, struct agent_app_stats *ret);

/* How many processes of it the kernel has killed for the memory; -1: it does not count them. */
int64_t cgroup_oom_kills(const struct cgroup_controller *memory);

#endif
