/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root directory of the agent: a tmpfs in which nothing of the host is to be seen but the few
 * devices that apps get, and the disks of the pod.
 */
#ifndef STAGE1_NS_POD_ROOT_H
#define STAGE1_NS_POD_ROOT_H

#include "lib/base/err.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/volumes/host_volume.h"

struct root_input {
	const struct pod_cgroup *groups; /* shown at ROOT_CGROUP_DIR */
	const char *scratch; /* the directory for what apps write, relative; NULL: in memory */
	int scratch_mount;   /* detached mount of it with other ids; -EBADF: as it is */
	int sysfs;           /* detached mount of it; -EBADF: one is made */
	const struct host_volume *volumes;
	const int *volume_mounts; /* of these */
	size_t n_volumes;
};

/* The pod's control group, or the hierarchies of version 1 in which it has one, by their names. */
#define ROOT_CGROUP_DIR "/cgroup"

/* Mounts sysfs(5) for the caller's network namespace, attached nowhere. The mount, or -errno. */
int root_mount_sysfs(void);

/*
 * Attaches the @n @mounts, of @volumes, where the agent finds them below its root directory @root.
 * 0 or -errno.
 */
int root_add_volumes(int root, const struct host_volume *volumes, const int *mounts, size_t n);

/*
 * Makes the root directory on the working directory, which it hides, and changes to it, in a mount
 * namespace of the caller's own, whose processes are those of its PID namespace. Nothing else stays
 * mounted. *ret_cgroups: whether there are control groups. 0, or -errno and @e.
 */
int root_enter(const struct root_input *in, bool *ret_cgroups, struct err *e);

#endif
