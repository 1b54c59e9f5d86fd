/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod is made of, as far as the supervisor knows it: a virtual machine or something else
 * that runs husk-agent. Each flavor of stage1 is one backend, and one route for the entrypoints
 * beside it.
 *
 * Life of a pod's backend: create, option for each that was given, prepare (or check), start, free.
 * From start on, events come from the loop; after `ended` only free is left. The supervisor decides
 * when a pod ends, the backend why it ended when nobody decided it.
 */
#ifndef STAGE1_BACKEND_H
#define STAGE1_BACKEND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"
#include "lib/wire/net.h"
#include "lib/wire/pod_manifest.h"
#include "stage1/agent/dial.h"

struct cgroup_limits;
struct volume_keeper;

/* The pod of a backend; each defines its own. */
struct backend_pod;

/* What a backend tells while the pod runs. */
struct backend_events {
	/* A sign of life: if the agent was not there yet, it may be now. */
	void (*spoke)(void *ctx);
	/* A stage of the start was reached; @name is for people and stays valid. */
	void (*reached)(void *ctx, const char *name);
	/* The host could not do what an app wanted of the pod's disk. */
	void (*disk_error)(void *ctx);
	/* Somebody has stopped the whole pod for a while, or lets it go on. */
	void (*suspended)(void *ctx, bool is);
	/* A helper has ended. @why counts unless `ended`, which may follow, says more. */
	void (*helper_ended)(void *ctx, const struct err *why);
	/* Nothing of the pod runs any more. @why: what a person is told if nobody asked for it. */
	void (*ended)(void *ctx, const struct err *why);
};

#define BACKEND_QUEUES_MAX 4 /* of a tap */

/* What a pod with a machine of its own gets for an interface: queues of a tap of the host. */
struct backend_tap {
	/* Of /dev/net/tun, with struct virtio_net_hdr; or, if @is_stream, one socket. */
	int queues[BACKEND_QUEUES_MAX];
	int vhosts[BACKEND_QUEUES_MAX]; /* of /dev/vhost-net, if @has_vhost */
	size_t n_queues;
	bool has_vhost, is_stream;
};

/* The network that a pod gets. */
struct backend_net {
	/* Of a backend whose pods are processes of the host (in_netns). */
	bool is_host; /* its pod shares the host's network namespace */
	int joined;   /* the namespace that it joins; -EBADF: it makes one */
	int socket;   /* where that one is sent to be connected; -EBADF: loopback is enough */
	/* Of others. */
	const struct net *net; /* the interfaces, and for each a tap; NULL: none */
	const struct backend_tap *taps;
};

#define BACKEND_NET_NONE ((struct backend_net){ .joined = -EBADF, .socket = -EBADF })

struct backend_input {
	int pod_fd;                /* the pod directory, which is the working directory, too */
	const char *uuid;          /* of the pod */
	const char *cgroup_parent; /* of its control group (pod_cgroup.h); empty: none */
	const struct pod_manifest *manifest;
	const char
		*cache_dir; /* what pods of the host can share is kept here; NULL: write no disk */
	const char *secret; /* AGENT_SECRET_LEN hex digits, which the agent is to know */
	bool debug;         /* the pod is to be talkative */
	bool unprivileged_ids; /* what needs no more runs under @uid and the group of that number */
	uid_t uid;
	struct backend_net net; /* there when the pod is started; descriptors are borrowed */
	/*
	 * Likewise, for each volume of the pod that is a file system on a disk: the file or device,
	 * O_RDONLY if pod_manifest_only_reads_volume(), else O_RDWR.
	 */
	const int *blocks;
	bool open_paths; /* apps get what is hidden or read-only in /proc and /sys */
};

/* What a pod is to have that not every backend or host can give. */
struct backend_wishes {
	bool shares_net; /* its network namespace, if it is in one at all, is not its own */
	bool host_volumes, block_volumes;
	bool open_paths; /* as in struct backend_input */
};

/*
 * @why is NULL if the image is there, or gone. @left: it failed so that a part of it may still be
 * there, and the slot cannot be used again. Called once, never from within the function that asked.
 */
typedef void (*backend_done_fn)(void *ctx, const struct err *why, bool left);

struct backend {
	const char *flavor; /* what people call it: "kvm" */

	/*
	 * Options of the run entrypoint that only this flavor has; all take an argument. Ends with
	 * NULL.
	 */
	const char *const *options;
	const struct agent_route *route;

	/*
	 * Pods are processes in a network namespace of the host, which the backend makes unless it
	 * is to join one. Else they have interfaces of their own, and get taps.
	 */
	bool in_netns;

	/*
	 * Whether root in the pod, by its options, is root of the host. NULL: it never is.
	 */
	bool (*shares_users)(const struct backend_pod *p);

	/* Whether AF_VSOCK of the pod leads to nobody. NULL: never. For one that is prepared. */
	bool (*own_vsock)(const struct backend_pod *p);

	/* NULL: memory is short. */
	struct backend_pod *(*create)(void);

	/* Takes an option of the list above; @value outlives the pod. 0, or -EINVAL and @e. */
	int (*option)(struct backend_pod *p, const char *name, const char *value, struct err *e);

	/*
	 * Whether the host can do what the options and @wishes ask for: prepare() would not fail
	 * for it. Makes nothing. 0, or -errno and @e.
	 */
	int (*check)(struct backend_pod *p, const struct backend_wishes *wishes, struct err *e);

	/*
	 * Looks at the host and plans, without a process yet. @in outlives the pod. Fills in what
	 * of @setup is the backend's: where the agent finds the disk for what apps write. 0, or
	 * -errno and @e, which names the object, the cause and the remedy.
	 */
	int (*prepare)(struct backend_pod *p, const struct backend_input *in,
		       struct agent_pod_setup *setup, struct err *e);

	/* How many queues a tap should have, 1 to BACKEND_QUEUES_MAX. NULL if @in_netns. */
	size_t (*queues)(const struct backend_pod *p);

	/*
	 * Starts the pod with the images @images of its declared apps (borrowed, in the order of
	 * the manifest, which is that of the slots). 0, or -errno and @e; then nothing runs.
	 */
	int (*start)(struct backend_pod *p, struct loop *loop, const int *images,
		     const struct backend_events *events, void *ctx, struct err *e);

	/*
	 * Whether the running pod has what @app of @pod, which comes later, may use by its limits.
	 * NULL: it has what the host has. 0, or -ENOSPC with the numbers in @e.
	 */
	int (*fits)(const struct backend_pod *p, const struct pod_manifest *pod,
		    const struct pod_app *app, struct err *e);

	/*
	 * Plugs the read-only image @fd, taken over, into @slot, or unplugs what is there. @done is
	 * called later, unless the pod ends before. 0; -ENOTCONN if it is too early, -E2BIG.
	 */
	int (*plug)(struct backend_pod *p, int slot, int fd, backend_done_fn done, void *ctx);
	int (*unplug)(struct backend_pod *p, int slot, backend_done_fn done, void *ctx);

	/* Ends the pod at once; `ended` follows. */
	void (*kill)(struct backend_pod *p);

	/*
	 * The same for a pod whose agent has said that all is written, and of whose streams nothing
	 * is waited for: helpers go with it.
	 */
	void (*drop)(struct backend_pod *p);

	/* The last that the pod has said for people, or "". */
	const char *(*last_words)(const struct backend_pod *p);

	/* Kills and reaps what still runs, closes and frees everything. Accepts NULL. */
	void (*free)(struct backend_pod *p);
};

/*
 * What the flavor that an entrypoint was built for defines: its backend; the route to its agent;
 * the name that its documents have for a helper process that calls itself @comm (proc(5)).
 */
extern const struct backend flavor_backend;
extern const struct agent_route flavor_route;
const char *flavor_helper_name(const char *comm);

/* Who has the volumes of the host in a pod of the flavor. */
extern const struct volume_keeper flavor_volume_keeper;

/*
 * Changes limits of the pod @uuid that runs: those that @changed names (bit N: enum isolator N)
 * become those of @l. 0, or -errno and @e; then they are as they were.
 */
int flavor_update(const char *uuid, unsigned changed, const struct cgroup_limits *l, struct err *e);

/*
 * Removes what a pod of the flavor that was killed has left outside of its directory, where no
 * process of it is left, in control group @cgroup_parent among others; unless it @stays for a
 * while, also files of its directory that stage0 could not remove. Can be repeated. 0, or -errno
 * and @e.
 */
int flavor_clean_up(const char *uuid, const char *cgroup_parent, bool stays, struct err *e);

#endif
