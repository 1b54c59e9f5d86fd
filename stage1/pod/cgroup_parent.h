/* SPDX-License-Identifier: Apache-2.0 */
/* The control group that somebody wants a pod's to be in, by name. Pure. */
#ifndef STAGE1_POD_CGROUP_PARENT_H
#define STAGE1_POD_CGROUP_PARENT_H

#include "stage1/pod/cgroup_mounts.h"

/*
 * Yields in @ret the path of the group @name below the root of a tree, without a slash at either
 * end: @name without its slashes if it begins with one; else it is a slice of systemd, such as
 * "kubepods-pod1.slice", and its place follows from its name (systemd.slice(5)): that is
 * "kubepods.slice/kubepods-pod1.slice". Empty: the root. 0; -EINVAL if it is neither, has a
 * component that is "." or "..", or a control character; -ENAMETOOLONG.
 */
int cgroup_parent_expand(const char *name, char ret[CGROUP_PATH_MAX]);

#endif
