/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes in a pod's control group may use of the host, all together: of either version
 * of control groups, whichever has the controller.
 */
#ifndef STAGE1_POD_POD_LIMITS_H
#define STAGE1_POD_POD_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/spawn.h"
#include "lib/wire/agent.h"
#include "stage1/pod/pod_cgroup.h"

/*
 * What the processes are: programs each of which can be killed, or one machine, which the kernel
 * kills as a whole when its memory is short, and may put into swap space as it likes.
 */
enum pod_limits_of {
	POD_LIMITS_OF_PROGRAMS, /* and their memory is limited with their swap space */
	POD_LIMITS_OF_MACHINE,
};

/*
 * Sets the limits of @g, which has none, and no groups below. 0; POD_CGROUP_E_NONE with @e naming
 * what cannot be limited on this host, the others being set; or -errno with @e.
 */
int pod_limits_set(const struct pod_cgroup *g, enum pod_limits_of of, const struct cgroup_limits *l,
		   struct err *e);

/*
 * Makes those limits of the group of pod @uuid that @changed names (bit N: enum isolator N) those
 * of @l, while it runs. 0; -ENOENT if it has none; or -errno as from cgroup_limits_change(), with
 * @e. Then it has those that it had.
 */
int pod_limits_update(const char *uuid, enum pod_limits_of of, unsigned changed,
		      const struct cgroup_limits *l, struct err *e);

/* The weight of a pod that is to have so many thousandths of a processor, beside others. */
int64_t pod_limits_weight(int64_t cpu_millis);

/* Reads what all of the pod has used, and may use, as the kernel of the host counts it. */
void pod_limits_count(const struct pod_cgroup *g, struct agent_app_stats *ret);

/* Whether the kernel has killed a process in there because of the limit of memory. */
bool pod_limits_killed(const struct pod_cgroup *g);

/*
 * Yields what spawn() needs to start processes in @g, which must stay open. 0 or -errno with @e;
 * pod_limits_close() in any case.
 */
int pod_limits_open(const struct pod_cgroup *g, struct spawn_cgroups *ret, struct err *e);

/* Closes what the last one has opened. Accepts SPAWN_CGROUPS_NONE. */
void pod_limits_close(struct spawn_cgroups *c);

#endif
