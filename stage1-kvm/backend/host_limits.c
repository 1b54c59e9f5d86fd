/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/host_limits.h"

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "stage1-kvm/plan/plan.h"

#define MIB (UINT64_C(1) << 20)

/* Measured under KVM: 16 MiB beside pages of files, which are given back where they are short. */
#define VM_OVERHEAD (128 * MIB)

/* What QEMU keeps of translated code by default, and its tables. */
#define TCG_OVERHEAD (1280 * MIB)

/* The host's page tables and those of the guest's addresses have 8 bytes a page each, at worst. */
#define PAGE_TABLES 128

/* QEMU's bound for what it keeps of the tables of a qcow2 file. */
#define QCOW2_OVERHEAD (33 * MIB)

/*
 * Of each file in a volume of the host that the guest remembers, in some 1 KiB of its memory,
 * virtiofsd and the host's kernel remember more.
 */
#define FILE_OVERHEAD 2048

/* QEMU has some threads, and up to 64 for disks; virtiofsd up to 64 and some. */
#define TASKS_MAX 512

uint64_t host_limits_overhead(const struct vm *vm)
{
	uint64_t memory = vm->memory_mib * MIB;
	uint64_t sum = VM_OVERHEAD + memory / PAGE_TABLES;
	if (vm->accel == VM_ACCEL_TCG)
		sum += TCG_OVERHEAD;
	if (vm->shares)
		sum += MIN(memory / 1024, (uint64_t)PLAN_FILES_MAX) * FILE_OVERHEAD;
	for (size_t i = 0; i < vm->n_disks; i++)
		if (vm->disks[i].format == VM_FORMAT_QCOW2)
			sum += QCOW2_OVERHEAD;
	return sum;
}

int host_limits_make(const char *uuid, const char *parent, const struct vm *vm, bool only_cpus,
		     struct host_limits *ret, struct err *e)
{
	ret->memory = vm->memory_mib * MIB + host_limits_overhead(vm);
	int64_t millis = INT64_C(1000) * vm->cpus;
	const struct cgroup_limits limits = { .memory_max = (int64_t)ret->memory,
					      .cpu_millis = only_cpus ? millis : 0,
					      .cpu_weight = pod_limits_weight(millis),
					      .pids_max = TASKS_MAX + vm->cpus };
	int r = pod_cgroup_make(uuid, parent, &ret->group, e);
	if (r != 0)
		return r;
	r = pod_limits_open(&ret->group, &ret->procs, e);
	return r < 0 ? r : pod_limits_set(&ret->group, POD_LIMITS_OF_MACHINE, &limits, e);
}

bool host_limits_killed(const struct host_limits *l)
{
	return pod_limits_killed(&l->group);
}

void host_limits_end(struct host_limits *l)
{
	struct err ignored = ERR_INIT;
	pod_limits_close(&l->procs);
	if (!pod_cgroup_is_there(&l->group))
		return;
	pod_cgroup_remove(l->group.uuid, l->group.parent, &ignored); /* else gc does */
	pod_cgroup_deinit(&l->group);
}
