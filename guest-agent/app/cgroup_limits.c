/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup_limits.h"

bool cgroup_limits_lower_memory(const struct cgroup_limits *from, const struct cgroup_limits *to)
{
	return to->memory_max != 0 && (from->memory_max == 0 || to->memory_max < from->memory_max);
}

int cgroup_limits_refuse_memory(int64_t max, int64_t used, struct fault *f)
{
	return fault_set(f, AGENT_E_STATE,
			 "cannot limit its memory to %lld bytes: it uses %lld that the kernel "
			 "cannot take back (let it free some, or stop it first)",
			 (long long)max, (long long)used);
}
