/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the pod's network: husk-net makes it (stage1/net), keeps the privileges
 * for that, and takes it away again, also when the supervisor is killed. A pod without a network of
 * its own, or with the host's, has no such process.
 *
 * Life: start, receive (waits for plugins), end. The end waits, too: a port of the host that was
 * the pod's is free when the pod has ended.
 */
#ifndef STAGE1_SUPERVISE_NETWORK_H
#define STAGE1_SUPERVISE_NETWORK_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "lib/wire/net_names.h"
#include "stage1/backend.h"
#include "stage1/supervise/names.h"

#define NETWORK_DIRS_MAX 16 /* of configuration or plugins: a handful is usual */

/* What the user asked for. */
struct network_options {
	struct strv nets;        /* NAME[:ARGS] */
	const char *netns;       /* somebody else's namespace; NULL: none */
	struct strv config_dirs; /* where networks are described */
	struct strv plugin_dirs; /* where plugins are; empty: NETWORK_PLUGIN_DIRS */
};

/* Where packages put CNI plugins. */
#define NETWORK_PLUGIN_DIRS "/usr/lib/cni:/opt/cni/bin:/usr/libexec/cni:/usr/lib/rkt/plugins/net"

enum network_kind {
	NETWORK_NONE, /* a namespace of its own with the loopback interface */
	NETWORK_HOST, /* that of the host */
	NETWORK_OWN,  /* a namespace that husk-net connects */
	NETWORK_USER, /* one that passt connects, of others than root */
};

struct network_choice {
	enum network_kind kind;
	bool is_default; /* nobody has asked: it is the default one, or plugins are missing for it */
};

struct network {
	pid_t helper; /* 0: none */
	int socket;
	bool received;
	struct net *net; /* owned: what the pod has; NULL until received */
	struct net_dns dns;
	struct backend_tap taps[NET_INTERFACES_MAX];
	size_t n_taps;
	int listener; /* for connections into the VM (stage1/net/local_listener.h), or -EBADF */
};

/* Nothing is asked for; what frees the lists. */
void network_options_init(struct network_options *o);
void network_options_deinit(struct network_options *o);

/* No network, and no process for one. */
void network_init(struct network *n);

/*
 * Which kind of network a pod of @backend gets by @o, root's if @is_root. 0, or -EINVAL, -EPERM,
 * -EOPNOTSUPP and @e.
 */
int network_choose(const struct network_options *o, const struct backend *backend, bool is_root,
		   struct network_choice *ret, struct err *e);

/* Whether somebody wants no default network: where plugins are is configured as nowhere. */
bool network_is_off(const struct network_options *o);

struct network_input {
	const struct network_options *options;
	const struct names_options *names;
	enum network_kind kind; /* NETWORK_OWN, NETWORK_USER */
	const char *uuid;
	int lock_fd;     /* the pod directory, with its lock: it has ended when its network has */
	size_t n_queues; /* of a tap for each interface; 0: the pod is in the namespace itself */
	bool netns_comes;
	bool debug;
};

/*
 * Begins to make the network of @in, if it takes husk-net. With @in->netns_comes *ret_netns is the
 * socket over which the namespace is to come (stage1/net/message.h); it is the caller's. 0, or
 * -errno and @e.
 */
int network_start(struct network *n, const struct network_input *in, int *ret_netns, struct err *e);

/* Whether the network is still to come: the socket is readable when it does, or has failed. */
bool network_is_awaited(const struct network *n);

/* Waits for the network, once. 0, or -errno and @e: "failed to setup network: ...". */
int network_receive(struct network *n, struct err *e);

/*
 * Takes what the socket of a network that was received has: husk-net, or what it takes care of, has
 * ended while the pod ran. -errno and @e: "what connects the pod ended unexpectedly: ...".
 */
int network_lost(struct network *n, struct err *e);

/* Nobody needs one that is awaited any more: husk-net stops what it does, and takes it away. */
void network_cancel(const struct network *n);

/* Whether a default route leads out of the pod, as far as is known yet. */
bool network_has_world(const struct network *n);

/* Closes what was received for the pod: it has it. */
void network_close_taps(struct network *n);

/*
 * Has the network taken away, and waits for that. 0, or -EIO if something was left for gc: @e has
 * what husk-net says of it. Then only network_deinit() is left.
 */
int network_end(struct network *n, struct err *e);

/* Ends it if it has not been ended, and frees what it holds. */
void network_deinit(struct network *n);

#endif
