/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's connections: a listening socket, a session for each connection, and the pod's
 * answers.
 */
#ifndef GUEST_AGENT_SERVE_SERVER_H
#define GUEST_AGENT_SERVE_SERVER_H

#include <stdint.h>

#include "guest-agent/pod/pod.h"
#include "lib/os/loop.h"

/*
 * Connections that have not shown the secret yet: the streams of half of AGENT_EXECS_MAX commands
 * that begin at the same time. And how long they may take: as long as a host waits for the answer;
 * one that starts fifty pods at once is slow.
 */
#define SERVER_NEW_MAX (2 * AGENT_EXECS_MAX)
#define SERVER_NEW_MS  60000

struct server_config {
	int listen_fd;      /* listening stream socket, not owned, non-blocking */
	bool is_vsock;      /* then only the host (CID 2) is let in */
	const char *secret; /* AGENT_SECRET_LEN hex digits */
	int64_t init_ns;    /* CLOCK_BOOTTIME when the agent began */
	struct pod_config pod;
};

struct server;

/* Starts to accept. NULL if memory or descriptors are short. */
struct server *server_new(struct loop *loop, const struct server_config *config);

/* Closes all connections. Accepts NULL. */
void server_free(struct server *s);

/* The pod, for reaping. */
struct pod *server_pod(struct server *s);

#endif
