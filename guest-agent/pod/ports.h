/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of the host to TCP ports on the loopback of the pod: what listens there listens for
 * the pod alone otherwise.
 */
#ifndef GUEST_AGENT_POD_PORTS_H
#define GUEST_AGENT_POD_PORTS_H

#include <stdint.h>

#include "guest-agent/fault.h"
#include "lib/os/loop.h"

struct ports; /* AGENT_CONNECTIONS_MAX connections */

/* None of them is used. NULL: no memory. */
struct ports *ports_new(struct loop *loop);

/* Closes all. Accepts NULL. */
void ports_free(struct ports *p);

/*
 * Connects to @port of 127.0.0.1, or of ::1 if nothing listens there, without waiting for who
 * listens and does not accept. *ret_fd, which is the caller's, is connected or about to be. 0 or
 * FAULT_SET, also if all connections are used.
 */
int ports_connect(struct ports *p, int64_t port, int *ret_fd, struct fault *f);

/*
 * Joins @fd, as ports_connect() gives it, with @sock, the connection of the host (non-blocking).
 * Both are taken over, also on failure. 0 or FAULT_SET.
 */
int ports_attach(struct ports *p, int fd, int sock, struct fault *f);

#endif
