/* SPDX-License-Identifier: Apache-2.0 */
/* The children that become an app, or a further process in one. */
#ifndef GUEST_AGENT_APP_LAUNCH_H
#define GUEST_AGENT_APP_LAUNCH_H

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guest-agent/app/rootfs.h"
#include "lib/wire/agent.h"

struct cgroup;
struct confinement;

struct launch {
	const struct rootfs_config *rootfs;
	struct rootfs_names names;
	const struct agent_app_add *spec;
	bool mounted; /* the app's root directory is */
	const struct confinement *confinement;
	pid_t init; /* of the app's PID namespace, not reaped yet; 0: the app is the first there */
	const struct cgroup *cgroup;
	int stdio[3];
	int devpts_fd; /* detached devpts mount of the app's terminal, or -EBADF */
};

struct launch_exec {
	const struct rootfs_config *rootfs;
	const struct agent_app_exec *spec;
	const struct confinement *confinement; /* the app's */
	pid_t init;
	const struct cgroup *cgroup;
	pid_t app_pid;   /* the app's process, released and not reaped yet */
	int app_hear_fd; /* what it says */
	int stdio[3];
};

/* A process on its way to become an app, or a further process in one. */
struct launched {
	pid_t pid;
	int hear_fd;    /* what it says; does not block */
	int release_fd; /* lets it go on; when this is closed, a process that still waits ends */
};

#define LAUNCHED_INIT ((struct launched){ .hear_fd = -EBADF, .release_fd = -EBADF })

/*
 * Forks the process that becomes the app. It mounts the app's root directory, says how that went,
 * and waits for launch_release(). It ends with EXECUTE_EXIT_CODE if anything fails after that and
 * before its program's first instruction; it says why, too. *ret is the caller's. What it needs of
 * @l it has copied; the descriptors stay the caller's. 0 or FAULT_SET.
 */
int launch(const struct launch *l, struct launched *ret, struct fault *f);

/*
 * Forks the process that becomes a further one in a running app, confined as the app is. It ends
 * with EXECUTE_EXIT_CODE if anything fails before its program's first instruction, and says why.
 * Otherwise as launch(), without anything to release.
 */
int launch_exec(const struct launch_exec *l, struct launched *ret, struct fault *f);

/* Closes the descriptors; the process is not touched. */
void launched_deinit(struct launched *p);

/*
 * The next thing that the process has said: that it has mounted (code 0) or what failed. 0, -EAGAIN
 * if there is nothing yet, -EPIPE if it will say no more (the program runs, or the process is
 * gone).
 */
int launch_hear(const struct launched *p, struct fault *ret);

/* True if the process, which was released, executes its program by now, or has ended. */
bool launch_has_executed(const struct launched *p);

/* Lets the process go on as soon as it has mounted. 0 or -errno. */
int launch_release(const struct launched *p);

/* Lets a process that waits for its release end instead. */
void launch_abandon(struct launched *p);

#endif
