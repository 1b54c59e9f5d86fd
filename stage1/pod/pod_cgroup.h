/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of a pod on the host: "husk/UUID" in the tree of version 2, where the host has
 * one, and in those hierarchies of version 1 that count and limit what apps use; below their tops,
 * or below a parent that somebody has chosen: a path as from cgroup_parent_expand(). A parent of
 * the pod's own is made for it, and has a second group for what looks after the pod.
 */
#ifndef STAGE1_POD_POD_CGROUP_H
#define STAGE1_POD_POD_CGROUP_H

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/uuid.h"
#include "stage1/pod/cgroup_mounts.h"

struct err;

/* The descriptors follow enum cgroup_kind; -EBADF is what the host has not got. */
struct pod_cgroup {
	char uuid[UUID_TEXT_LEN + 1];
	char parent[CGROUP_PATH_MAX]; /* empty: the top */
	int fds[CGROUP_KINDS];
};

#define POD_CGROUP_INIT \
	((struct pod_cgroup){ .fds = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

/* POD_CGROUP_E_NONE: this host, or this user, can have no groups; @e says why. */
enum {
	POD_CGROUP_E_NONE = 1,
};

/*
 * Makes the group of pod @uuid, or takes it as it is: for root below the root of each tree, in
 * version 2 with the controllers that apps need as far as can be; for other users, who have none of
 * version 1, below the group of this process if it is theirs (delegated). With a @parent, which is
 * not empty, it is below that, wherever that is: somewhere, and a tree that has none is used as
 * without. *ret is for pod_cgroup_deinit(). 0, POD_CGROUP_E_NONE or -errno, both with @e; then
 * nothing is left of it.
 */
int pod_cgroup_make(const char *uuid, const char *parent, struct pod_cgroup *ret, struct err *e);

/*
 * Makes @parent, which is of the pod's own, as far as it is missing, in all trees that count, and
 * puts the calling process into the group "husk/UUID-supervisor" there: before pod_cgroup_make(),
 * and before it starts others. 0 or -errno with @e.
 */
int pod_cgroup_supervise(const char *uuid, const char *parent, struct err *e);

/*
 * Opens what pod_cgroup_make() has made for @uuid, with the same @parent; where it is not, *ret has
 * no descriptors. 0 or -errno with @e.
 */
int pod_cgroup_open(const char *uuid, const char *parent, struct pod_cgroup *ret, struct err *e);

/*
 * Opens the directories of @g again, by their paths, in a mount namespace that the process has got
 * meanwhile, where those of @g cannot be mounted from. 0 or -errno with @e.
 */
int pod_cgroup_reopen(const struct pod_cgroup *g, struct pod_cgroup *ret, struct err *e);

/* Closes the descriptors; the group stays. Accepts what POD_CGROUP_INIT has set. */
void pod_cgroup_deinit(struct pod_cgroup *g);

/* Whether there is one. */
bool pod_cgroup_is_there(const struct pod_cgroup *g);

/* Whether memory and processes are limited in hierarchies of version 1, not in the tree. */
bool pod_cgroup_is_v1(const struct pod_cgroup *g);

/* Whether processes in groups below can have a limit of memory: not so where others are beside. */
bool pod_cgroup_can_limit(const struct pod_cgroup *g);

/*
 * Makes the child @name of the group in version 2, which the host has, and enables the controllers
 * for it and its neighbours: what only a group without processes of its own can, and is done while
 * there are none at all, as the kernel makes others wait otherwise. A directory, which the caller
 * closes, or -errno with @e.
 */
int pod_cgroup_make_child(const struct pod_cgroup *g, const char *name, struct err *e);

/*
 * Lets @uid, and the group of that number, put processes into the group and make groups below it;
 * its limits stay ours. Needs root. 0 or -errno with @e.
 */
int pod_cgroup_delegate(const struct pod_cgroup *g, uid_t uid, struct err *e);

/*
 * Lets the processes of the group, which has no children yet, open those devices only that
 * device_filter.h lists. Needs root. 0 or -errno with @e.
 */
int pod_cgroup_filter_devices(const struct pod_cgroup *g, struct err *e);

/*
 * Kills all processes in the group of pod @uuid below @parent and further down, the caller not
 * being one of them, and waits until they are gone: 10 seconds at most. 0, also if there is no
 * group, or -errno with @e.
 */
int pod_cgroup_kill(const char *uuid, const char *parent, struct err *e);

/*
 * Removes the group of pod @uuid and those below. What is left of processes in there is waited for,
 * as above. 0, also if there is no group, or -errno with @e.
 */
int pod_cgroup_remove(const char *uuid, const char *parent, struct err *e);

/*
 * When the supervisor has ended, and the pod's group is removed: kills what is left in the group
 * that pod_cgroup_supervise() has made, removes that, and then @parent, the same, unless somebody
 * else has groups or processes in there; what is above stays. 0, also if there is none, or -errno
 * with @e.
 */
int pod_cgroup_remove_own(const char *uuid, const char *parent, struct err *e);

#endif
