/* SPDX-License-Identifier: Apache-2.0 */
/* The control group that somebody wants a pod's to be in, by name. Pure. */
#ifndef STAGE1_POD_CGROUP_PARENT_H
#define STAGE1_POD_CGROUP_PARENT_H

#include <stdbool.h>

#include "stage1/pod/cgroup_mounts.h"

/*
 * Yields in @ret the path of the group @name below the root of a tree, without a slash at either
 * end: @name without its slashes if it begins with one; else it begins with a slice of systemd,
 * such as "kubepods-pod1.slice", whose place follows from its name (systemd.slice(5)): that is
 * "kubepods.slice/kubepods-pod1.slice". Empty: the root. With a "+" in front the group is to be the
 * pod's own, not the root; its path then ends with a slash. 0; -EINVAL if it is neither path nor
 * slice, has a component that is "." or "..", or a control character; -ENAMETOOLONG.
 */
int cgroup_parent_expand(const char *name, char ret[CGROUP_PATH_MAX]);

/* Whether @path, as from cgroup_parent_expand(), is a group of the pod's own. */
bool cgroup_parent_is_own(const char *path);

#endif
