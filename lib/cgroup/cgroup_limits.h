/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a control group may use: the files of cgroup-v2.rst, and of the hierarchies
 * of version 1 (cgroup-v1/memory.rst, sched-bwc.rst), where a host may have one controller in the
 * one and the next in the other.
 */
#ifndef LIB_CGROUP_CGROUP_LIMITS_H
#define LIB_CGROUP_CGROUP_LIMITS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* 0 is not a limit. */
struct cgroup_limits {
	int64_t memory_max; /* bytes, with what the kernel keeps for it and the pages of files */
	int64_t cpu_millis; /* thousandths of a processor */
	int64_t cpu_weight; /* where processors are short, as version 2 counts: others have 100 */
	int64_t pids_max;   /* processes and threads */
};

#define CGROUP_CPU_WEIGHT_DEFAULT 100   /* the kernel's, of a group of which nothing is said */
#define CGROUP_CPU_WEIGHT_MAX     10000 /* the kernel's */
#define CGROUP_SHARES_DEFAULT     1024  /* the weight that version 1 has by default */

/* Bytes that version 1 calls a limit where there is none, and more: the last page of any size. */
#define CGROUP_V1_NO_LIMIT (INT64_MAX - 65536)

/*
 * The weight of so many shares, which version 1 counts and appc means; at least one. The same part
 * of what others have, so that it means the same wherever it is set.
 */
int64_t cgroup_weight_of_shares(int64_t shares);

/* The directory of a group that has the files of a controller; -EBADF: none has. */
struct cgroup_controller {
	int dir;
	bool is_v1;
};

/* Where a group is limited and counted. Descriptors are borrowed. */
struct cgroup_controllers {
	struct cgroup_controller memory, cpu, pids;
	struct cgroup_controller cpuacct, io; /* these count only */
	bool may_swap; /* a limit of memory is not one of memory and swap space together */
};

/* All are where one is, as always in version 2. */
#define CGROUP_CONTROLLERS_IN(one) \
	((struct cgroup_controllers){ (one), (one), (one), (one), (one), false })

#define CGROUP_CONTROLLERS_NONE CGROUP_CONTROLLERS_IN(((struct cgroup_controller){ -EBADF, false }))

/*
 * Sets those limits of a group, which has @from, that differ in @to, also while processes are in
 * it. 0; -EBUSY if more memory is in use than it may be, and the kernel cannot take it back;
 * -EOPNOTSUPP if there is no such controller; or -errno. With @e; then the group has @from.
 */
int cgroup_limits_change(const struct cgroup_controllers *c, const struct cgroup_limits *from,
			 const struct cgroup_limits *to, struct err *e);

/*
 * Reads what the group has; what no controller limits, or a controller that is not there, is 0. The
 * weight is 0 where it is the usual one.
 */
void cgroup_limits_read(const struct cgroup_controllers *c, struct cgroup_limits *ret);

#endif
