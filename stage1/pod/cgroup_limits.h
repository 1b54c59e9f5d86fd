/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes in a pod's control group may use of the host, all together: of either version
 * of control groups, whichever has the controller.
 */
#ifndef STAGE1_POD_CGROUP_LIMITS_H
#define STAGE1_POD_CGROUP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/os/spawn.h"
#include "stage1/pod/pod_cgroup.h"

/* 0: not limited. */
struct cgroup_limits {
	uint64_t memory; /* bytes, with what the kernel keeps for them and the pages of files */
	unsigned tasks;  /* threads and processes */
	unsigned cpus;   /* their share where others want to run as well is that of so many */
	bool only_cpus;  /* and they never get more than that */
};

/*
 * Sets the limits of @g. Who reaches that of memory is killed, in version 2 with all others in
 * there. 0; POD_CGROUP_E_NONE with @e naming what cannot be limited on this host, the others being
 * set; or -errno with @e.
 */
int cgroup_limits_set(const struct pod_cgroup *g, const struct cgroup_limits *l, struct err *e);

/* Whether the kernel has killed a process in there because of the limit of memory. */
bool cgroup_limits_killed(const struct pod_cgroup *g);

/*
 * Yields what spawn() needs to start processes in @g, which must stay open. 0 or -errno with @e;
 * cgroup_limits_close() in any case.
 */
int cgroup_limits_open(const struct pod_cgroup *g, struct spawn_cgroups *ret, struct err *e);

/* Closes what the last one has opened. Accepts SPAWN_CGROUPS_NONE. */
void cgroup_limits_close(struct spawn_cgroups *c);

#endif
