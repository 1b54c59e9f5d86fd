/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups: one for each app, "NUMBER" below a directory that apps do not see. Of version 2,
 * or where a launcher has prepared hierarchies of version 1, of that (cgroup_v1.h says what differs
 * then). Files of the kernel only: nothing here waits for a disk. Counters may wait for locks that
 * busy apps hold.
 */
#ifndef GUEST_AGENT_APP_CGROUP_H
#define GUEST_AGENT_APP_CGROUP_H

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guest-agent/fault.h"

struct cgroup_limits;
struct err;

/* Where the groups of apps are. */
struct cgroup_dir {
	const char *path; /* borrowed; NULL: there are no control groups */
	bool is_v1;       /* hierarchies of version 1 are in there */
};

/* The group of an app, as new processes of the app need it. */
struct cgroup {
	int fd;             /* version 2: its directory, which they are born into; else -EBADF */
	const char *v1_dir; /* version 1: borrowed, for cgroup_enter(); else NULL */
	unsigned number;
};

#define CGROUP_INIT ((struct cgroup){ .fd = -EBADF })

/*
 * Mounts the hierarchy of version 2 on @dir, which is created, with all controllers that apps need,
 * and makes group 1, so that the first app finds it. 0, also if it is mounted, or -errno; then
 * there is no @dir.
 */
int cgroup_mount(const char *dir);

/*
 * Takes @path, of at most CGROUP_V1_DIR_MAX bytes, as somebody else has mounted it: a group of
 * version 2 without processes of its own (the caller is in a child of it), whose controllers are
 * enabled for its children as far as it has them; or a directory of hierarchies of version 1. *ret
 * borrows @path. 0 or -errno with @e.
 */
int cgroup_adopt(const char *path, struct cgroup_dir *ret, struct err *e);

/*
 * Makes group @number below @dir, or takes the one that cgroup_mount() has made, and sets @limits.
 * *ret is for cgroup_close(); if there are no groups and no limits, nothing is in it. 0, or
 * FAULT_SET if the limits cannot be held.
 */
int cgroup_make(const struct cgroup_dir *dir, unsigned number, const struct cgroup_limits *limits,
		struct cgroup *ret, struct fault *f);

/* As cgroup_make() has yielded it, which has made group @number. 0 or -errno. */
int cgroup_open(const struct cgroup_dir *dir, unsigned number, struct cgroup *ret);

/*
 * Sets those limits of group @number, which has @from, that differ in @to, also while processes are
 * in it. 0, or FAULT_SET, with AGENT_E_STATE if more memory is in use than it may be; then it has
 * @from. May block as cgroup_stats().
 */
int cgroup_change(const struct cgroup_dir *dir, unsigned number, const struct cgroup_limits *from,
		  const struct cgroup_limits *to, struct fault *f);

/* Closes what is open; the group stays. */
void cgroup_close(struct cgroup *group);

/*
 * Moves the calling process, which has one thread, into the group unless it was born into it. Takes
 * no system call then. 0 or FAULT_SET.
 */
int cgroup_enter(const struct cgroup *group, struct fault *f);

/* True if the kernel has killed a process of the group because memory was short. */
bool cgroup_had_oom_kill(const struct cgroup_dir *dir, unsigned number);

/*
 * What group @number counts, -1 for what the kernel does not count and for limits that there are
 * none of. Without groups all is -1. May block as long as the kernel likes: never in the agent
 * itself.
 */
void cgroup_stats(const struct cgroup_dir *dir, unsigned number, struct agent_app_stats *ret);

/*
 * Sends @sig to each process of group @number but @except, as it finds them. 0; -EOPNOTSUPP without
 * groups; -errno.
 */
int cgroup_signal(const struct cgroup_dir *dir, unsigned number, int sig, pid_t except);

/*
 * Has the processes of group @number stand still, those that will come among them, or go on. What
 * is in the kernel at the time stops when it leaves it. 0; -EOPNOTSUPP without groups of version 2;
 * -errno.
 */
int cgroup_freeze(const struct cgroup_dir *dir, unsigned number, bool frozen);

/*
 * Kills the processes of group @number, also those that come meanwhile. Where cgroup_can_kill()
 * says yes 0 or -errno.
 */
int cgroup_kill(const struct cgroup_dir *dir, unsigned number);

/* True of a group of version 2, on a kernel from 5.14 on. */
bool cgroup_can_kill(const struct cgroup *group);

/*
 * The caller's descriptor that is readable by EPOLLPRI when cgroup_is_populated() of it may say
 * something else than the last time; -EOPNOTSUPP, -errno.
 */
int cgroup_open_events(const struct cgroup_dir *dir, unsigned number);

/* Whether there is a process in the group. */
bool cgroup_is_populated(int events_fd);

/* Removes the group, in which no process is any more. */
void cgroup_remove(const struct cgroup_dir *dir, unsigned number);

#endif
