/* SPDX-License-Identifier: Apache-2.0 */
/* What limits are, in either version of control groups. */
#ifndef GUEST_AGENT_APP_CGROUP_LIMITS_H
#define GUEST_AGENT_APP_CGROUP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/fault.h"

/* As struct agent_confinement has them; 0 is not a limit. */
struct cgroup_limits {
	int64_t memory_max, cpu_millis, cpu_weight, pids_max;
};

/* The quota of cpu_millis is one of each such period. */
#define CGROUP_CPU_PERIOD_US    100000 /* the kernel's default */
#define CGROUP_CPU_QUOTA_US_MIN 1000   /* the kernel takes no less */

#define CGROUP_CPU_WEIGHT_DEFAULT 100 /* the kernel's, of a group of which nothing is said */

/* Whether less memory is allowed by @to than by @from. */
bool cgroup_limits_lower_memory(const struct cgroup_limits *from, const struct cgroup_limits *to);

/* Says that @used bytes, which the kernel cannot take back, are beyond @max. FAULT_SET. */
int cgroup_limits_refuse_memory(int64_t max, int64_t used, struct fault *f);

#endif
