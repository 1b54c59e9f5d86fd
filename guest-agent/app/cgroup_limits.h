/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GUEST_AGENT_APP_CGROUP_LIMITS_H
#define GUEST_AGENT_APP_CGROUP_LIMITS_H

#include <stdint.h>

/* As struct agent_confinement has them; 0 is not a limit. */
struct cgroup_limits {
	int64_t memory_max, cpu_millis, cpu_weight, pids_max;
};

/* The quota of cpu_millis is one of each such period. */
#define CGROUP_CPU_PERIOD_US    100000 /* the kernel's default */
#define CGROUP_CPU_QUOTA_US_MIN 1000   /* the kernel takes no less */

#endif
