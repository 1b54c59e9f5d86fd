/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of one pod as a whole: its namespace, its ports of the host, what plugins make of
 * them, taps and filters.
 *
 * Order of effects: what cannot be done is found out first; then the ports, the namespace and its
 * name, the plugins, the filters. The end goes the other way; where a plugin fails, all that it
 * may need stays for gc. All that outlives a process is found again by what is in the pod
 * directory (stage1/net/cni/state.h) and by the pod's UUID.
 */
#ifndef STAGE1_NET_CONNECTION_H
#define STAGE1_NET_CONNECTION_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "lib/wire/net_info.h"
#include "lib/wire/net_names.h"
#include "lib/wire/pod_manifest.h"
#include "stage1/net/passt.h"
#include "stage1/net/tap.h"

#define CONNECTION_DIRS_MAX 16 /* as of NETWORK_DIRS_MAX of the supervisor */

struct connection_input {
	const char *uuid;
	int pod_fd;
	struct strv nets;  /* NAME[:ARGS] */
	const char *netns; /* somebody else's namespace instead; NULL: the pod's own */
	const char *passt; /* the program that connects pods of others than root; NULL: plugins */
	struct strv config_dirs, plugin_dirs;
	struct net_dns dns; /* what the user says of names, for plugins that want to know it */
	size_t n_queues;    /* of a tap for each interface; 0: no taps */
	int netns_socket;   /* where the pod's namespace comes from; -EBADF: it is made here */
	int cancel_fd;      /* readable, or at its end, when nobody wants the network any more */
	bool debug;
};

struct connection {
	int netns;
	char path[PATH_MAX]; /* of the namespace; "" before it has one */
	struct net net;
	struct net_dns dns;
	bool with_dhcp;
	int64_t plugins_ns;        /* how long plugins took */
	struct net_info_list made; /* by them */
	struct tap taps[NET_INTERFACES_MAX];
	size_t n_taps;
	size_t n_tied;                /* so many of the interfaces lead to a tap */
	int ports[2 * POD_PORTS_MAX]; /* sockets */
	size_t n_ports;
	struct passt passt;
	int listener, listener_link; /* local_listener.h, of somebody else's namespace */
};

#define CONNECTION_INIT                            \
	((struct connection){ .netns = -EBADF,     \
			      .passt = PASST_INIT, \
			      .listener = -EBADF,  \
			      .listener_link = -EBADF })

/* Makes all of it. 0, or -errno and @e; connection_end() in any case. */
int connection_make(struct connection *c, const struct connection_input *in, struct err *e);

/* Closes the descriptors of taps, the stream, and the listener: others have them. */
void connection_close_given(struct connection *c);

/* Tells who has sent the namespace that it is connected. 0, or -errno and @e. */
int connection_release(const struct connection_input *in, struct err *e);

/* Takes all of it away. 0, or -errno and @e with the first failure: the rest is left to gc. */
int connection_end(struct connection *c, const struct connection_input *in, struct err *e);

/* The same for a pod of which no process is left. */
int connection_clean_up(const struct connection_input *in, struct err *e);

/* Has the plugins look whether all is as they have made it. As cni_check(). */
int connection_check(const struct connection_input *in, size_t *ret_asked, size_t *ret_n,
		     struct err *e);

/* Closes what is open; takes nothing away. */
void connection_deinit(struct connection *c);

#endif
