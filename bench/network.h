/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a pod's services, which is this program itself: TCP connections from the network
 * namespace at the other end of the pod's network. All of it ends when a signal came.
 */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include <stdint.h>

#include "bench/command.h"
#include "lib/base/err.h"

#define NETWORK_IP_SIZE 46 /* text of an IP address with its end: INET6_ADDRSTRLEN */

/* Longest wait for a service that is to come, and for a peer that says nothing. */
#define NETWORK_LIMIT_S 20

struct network_client {
	const struct runner *runner;
	const struct namespaces *from; /* NULL: those of this process */
	const char *ip;                /* the pod's */
};

/* All give seconds, from the moment of the connection on. 0, or -errno and @e. */

/* Sends @bytes, until the pod, which reads all, has closed the connection. */
int network_send(const struct network_client *n, unsigned port, uint64_t bytes, double *ret_s,
		 struct err *e);

/* Receives until the pod, which sends @bytes, has closed the connection. */
int network_receive(const struct network_client *n, unsigned port, uint64_t bytes, double *ret_s,
		    struct err *e);

/* @count times: sends a byte, and waits until the pod has sent it back. */
int network_echo(const struct network_client *n, unsigned port, unsigned count, double *ret_s,
		 struct err *e);

/* @count times: connects, asks for "/" by HTTP 1.0, and has all of the answer. */
int network_ask(const struct network_client *n, unsigned port, unsigned count, double *ret_s,
		struct err *e);

#endif
