/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a host has its control groups, out of what the kernel says about mounts: one tree of
 * version 2, hierarchies of version 1, or both (then usually without controllers in the former).
 * Pure. The texts are the kernel's, the names in them may be anybody's.
 */
#ifndef STAGE1_POD_CGROUP_MOUNTS_H
#define STAGE1_POD_CGROUP_MOUNTS_H

#include <stddef.h>

#define CGROUP_PATH_MAX 512 /* bytes of a path with its NUL; what is longer is not there */

enum cgroup_kind {
	CGROUP_UNIFIED, /* version 2; the others are hierarchies of version 1, by controller */
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* often the same hierarchy as CGROUP_CPU */
	CGROUP_PIDS,
	CGROUP_BLKIO,
	CGROUP_DEVICES,
	CGROUP_KINDS,
};

struct cgroup_mount {
	char path[CGROUP_PATH_MAX]; /* where it is mounted; empty: nowhere */
	char root[CGROUP_PATH_MAX]; /* which of its groups is to be seen there, mostly "/" */
};

struct cgroup_mounts {
	struct cgroup_mount at[CGROUP_KINDS];
};

/* "memory" and so on; "unified" for version 2. */
const char *cgroup_kind_name(enum cgroup_kind kind);

/*
 * Fills *ret from @mountinfo, the text of proc(5)'s /proc/PID/mountinfo. Lines that it does not
 * understand are not there. Of several mounts the first counts whose root is the hierarchy's.
 */
void cgroup_mounts_find(const char *mountinfo, struct cgroup_mounts *ret);

/*
 * Yields in @ret of @size bytes the path of the version 2 group that @own, the text of
 * /proc/PID/cgroup, names, below @unified. 0; -ENOENT if there is none, or it is not to be seen
 * there; -ENAMETOOLONG.
 */
int cgroup_mounts_own(const struct cgroup_mount *unified, const char *own, char *ret, size_t size);

#endif
