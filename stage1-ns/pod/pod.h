/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes and mounts of one pod: husk-agent as the first process of new namespaces, and the
 * images that it finds there.
 */
#ifndef STAGE1_NS_POD_POD_H
#define STAGE1_NS_POD_POD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/wire/agent.h"
#include "stage1/pod/pod_cgroup.h"
#include "stage1/volumes/host_volume.h"

#define POD_TASKS 4096 /* threads and processes of a pod, unless somebody says otherwise */

/* The network of a pod. */
enum pod_net {
	POD_NET_NONE,    /* a namespace with a loopback interface */
	POD_NET_HOST,    /* the host's */
	POD_NET_JOIN,    /* that of HELPER_FD_NETNS */
	POD_NET_CONNECT, /* one that is sent over HELPER_FD_NETNS before the agent starts */
};

struct pod_input {
	enum pod_net net;
	const char *uuid;
	const char *cgroup_parent; /* as pod_cgroup_make() takes it */
	bool with_userns;          /* else its root is the host's */
	bool with_scratch; /* what apps write goes to HELPER_FD_SCRATCH, else stays in memory */
	struct cgroup_limits limits; /* of the pod; no pids_max: POD_TASKS, where it can be */
	struct host_volume volumes[AGENT_VOLUME_SLOTS];
	size_t n_volumes;
};

struct pod {
	const struct pod_input *in;
	pid_t agent;                   /* 0: not running */
	int agent_fd;                  /* pidfd */
	int mount_ns, user_ns;         /* the agent's; user_ns is -EBADF without a user namespace */
	pid_t servers[AGENT_APPS_MAX]; /* of images, by slots; 0: the kernel reads it */
	bool of_root;                  /* root of the host has started it */
	int sysfs; /* mount of it for a network that is not the pod's own; else -EBADF */
	int volumes[AGENT_VOLUME_SLOTS]; /* mounts, to be attached */
	struct pod_cgroup cgroup;
	bool had_cgroup; /* one was made, which pod_end() removes */
	bool was_short;  /* the kernel has killed in there because of its limit of memory */
	int program;     /* the agent's, as a mount of its own; -EBADF: its process makes that */
	int sync;        /* to that process before it is the agent */
};

#define POD_INIT                                  \
	((struct pod){ .agent_fd = -EBADF,        \
		       .mount_ns = -EBADF,        \
		       .user_ns = -EBADF,         \
		       .sysfs = -EBADF,           \
		       .cgroup = POD_CGROUP_INIT, \
		       .program = -EBADF,         \
		       .sync = -EBADF })

/*
 * Makes the namespaces, with a process in them that waits, and the root directory. @in outlives the
 * pod. 0, or -errno and @e.
 */
int pod_create(struct pod *p, const struct pod_input *in, struct err *e);

/* Lets the waiting process become husk-agent. 0, or -errno and @e. */
int pod_start(struct pod *p, struct err *e);

/* Mounts the image @fd, borrowed, for @slot. 0, or -errno and @e. */
int pod_plug(struct pod *p, int slot, int fd, struct err *e);

/* Unmounts what is in @slot. 0, or -errno and @e. */
int pod_unplug(struct pod *p, int slot, struct err *e);

/*
 * Kills the agent and with it all processes of the pod, if it still runs, and waits for their end.
 * *ret_status is as from waitpid(2), -1 if there was no agent. The mounts stay until
 * pod_forget_mounts().
 */
void pod_end(struct pod *p, int *ret_status);

/*
 * Closes everything. The kernel, which unmounts now, writes out the whole file system to which apps
 * have written; that is waited for by a process of its own, which has the lock of the pod.
 */
void pod_forget_mounts(struct pod *p);

#endif
