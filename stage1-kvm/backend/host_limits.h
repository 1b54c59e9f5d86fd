/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a VM may use of the host: QEMU, and what serves it. They are in the pod's
 * control group, the supervisor is not: it is to say what the kernel killed them for.
 */
#ifndef STAGE1_KVM_BACKEND_HOST_LIMITS_H
#define STAGE1_KVM_BACKEND_HOST_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "stage1-kvm/plan/vm.h"
#include "stage1/pod/pod_limits.h"

struct err;

struct host_limits {
	struct pod_cgroup group;    /* without descriptors: none */
	struct spawn_cgroups procs; /* for what is started in it */
	uint64_t memory;            /* bytes: of the VM, and what running one takes */
};

#define HOST_LIMITS_INIT \
	((struct host_limits){ .group = POD_CGROUP_INIT, .procs = SPAWN_CGROUPS_NONE })

/* Bytes that the processes of @vm may take beside its memory (docs/decisions/0014). */
uint64_t host_limits_overhead(const struct vm *vm);

/*
 * Makes the control group of pod @uuid, in @parent (pod_cgroup.h), with the limits for @vm;
 * @only_cpus: it never gets more of the host's processors than it has. 0; POD_CGROUP_E_NONE with @e
 * if this host, or this user, cannot limit (all of) it, but the pod may run; or -errno with @e.
 * host_limits_end() in any case.
 */
int host_limits_make(const char *uuid, const char *parent, const struct vm *vm, bool only_cpus,
		     struct host_limits *ret, struct err *e);

/* Whether the kernel has killed a process of the pod since it had taken all its memory. */
bool host_limits_killed(const struct host_limits *l);

/* Removes the group, whose processes have ended. */
void host_limits_end(struct host_limits *l);

#endif
