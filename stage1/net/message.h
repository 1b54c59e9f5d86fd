/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor and husk-net, its helper for the pod's network, tell each other, over a
 * socket pair that keeps messages apart (SOCK_SEQPACKET). Both come from the same build, and
 * neither lets the pod talk to it.
 *
 * husk-net begins at once. If the backend makes the pod's network namespace, it sends a descriptor
 * of it over the socket NET_FD_NETNS (one byte), and waits there for one byte, which says that the
 * namespace is connected. The supervisor gets for each tap one NET_MESSAGE_TAP with its
 * descriptors, or NET_MESSAGE_STREAM; NET_MESSAGE_LISTENER for a VM in somebody else's namespace;
 * then NET_MESSAGE_READY, or NET_MESSAGE_FAILED with a line for people. This comes, too, when what
 * connects the pod has ended while it ran.
 *
 * When husk-net has read the end of the socket it takes everything away and ends: with 0, or
 * another code if something is left for gc, after a line on stderr.
 */
#ifndef STAGE1_NET_MESSAGE_H
#define STAGE1_NET_MESSAGE_H

#include <stdint.h>

/* Descriptors of husk-net at its start; its working directory is the pod's. */
#define NET_FD_SOCKET 3
#define NET_FD_POD    4 /* the pod directory, with the pod's lock */
#define NET_FD_NETNS  5 /* see above; only with --netns-comes */

#define NET_TEXT_MAX 65535 /* bytes of a message: all of struct net as JSON and DNS, or a line */

enum net_message_kind {
	NET_MESSAGE_TAP,    /* queues of the next interface; with them as many of vhost, or none */
	NET_MESSAGE_STREAM, /* a stream socket with frames, in place of a tap (passt.h) */
	NET_MESSAGE_LISTENER, /* what listens for connections into the VM (local_listener.h) */
	NET_MESSAGE_READY,    /* @text: a JSON object: "net", "dns" (lib/wire/net.h, net_names.h) */
	NET_MESSAGE_FAILED,   /* @text: why, for people */
};

struct net_message {
	uint32_t kind;
	uint32_t n_queues; /* NET_MESSAGE_TAP */
	uint32_t n_vhosts;
	uint32_t len;                /* bytes of @text */
	char text[NET_TEXT_MAX + 1]; /* sent as far as @len says */
};

#endif
