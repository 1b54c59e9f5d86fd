/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that somebody makes to the loopback of the namespace that leads to a VM
 * (stage1/net/local_listener.h): each goes on inside, to the same port of the pod's loopback.
 *
 * Theory of operation. For an accepted connection the agent is dialed and asked for the port
 * (stream.connect); when it agrees, the two become one (lib/net/duplex.h). FORWARDS_MAX are there
 * at a time, others wait in the backlog of the socket. What the agent refuses, as nobody listens
 * there, is ended with a reset, which is the nearest to what a client would have seen inside, and
 * so is what does not end in good order, as by the end of the pod. A client that is gone without a
 * word is found by keepalive probes.
 */
#ifndef STAGE1_SUPERVISE_FORWARDS_H
#define STAGE1_SUPERVISE_FORWARDS_H

#include "lib/os/loop.h"
#include "lib/wire/agent.h"
#include "stage1/agent/dial.h"

/* Half of what the agent takes, which learns of the end of one after us. Two descriptors each. */
#define FORWARDS_MAX (AGENT_CONNECTIONS_MAX / 2)

/* Seconds without a sign of the client to the first probe, between probes, and how many of them. */
#define FORWARDS_PROBE_AFTER 60
#define FORWARDS_PROBE_EACH  10
#define FORWARDS_PROBES      3

/* Until the next look at the socket when descriptors or memory are short. */
#define FORWARDS_PAUSE_MS INT64_C(1000)

struct forwards;

/*
 * Begins to take connections from @listener, which is borrowed, like @route; @secret is the pod's.
 * 0 and *ret, or -errno.
 */
int forwards_new(struct loop *loop, int listener, const struct agent_route *route,
		 const char *secret, struct forwards **ret);

/* Resets all connections. Accepts NULL. */
void forwards_free(struct forwards *f);

#endif
