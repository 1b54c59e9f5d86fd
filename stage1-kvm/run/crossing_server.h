/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of stage1-kvm/run/crossing.h: a unix socket in the pod directory, and for each
 * connection one request and one reply.
 */
#ifndef STAGE1_KVM_RUN_CROSSING_SERVER_H
#define STAGE1_KVM_RUN_CROSSING_SERVER_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1-kvm/run/crossing.h"

/* Connections at a time; further ones wait in the kernel until one of these has ended. */
#define CROSSING_CLIENTS_MAX 32

/* For a connection to send its request. */
#define CROSSING_REQUEST_MS INT64_C(10000)

struct crossing_ops {
	/*
	 * Acts on a request. Whether at once or later, crossing_server_reply() is called with @token,
	 * which is never 0, once.
	 */
	void (*request)(void *ctx, const struct crossing_request *q, uint64_t token);
	/* Whoever sent request @token has left without waiting: it needs no reply. */
	void (*gone)(void *ctx, uint64_t token);
};

struct crossing_server;

/* Listens on POD_FILE_CONTROL in the working directory. 0 or -errno. */
int crossing_server_new(struct loop *loop, const struct crossing_ops *ops, void *ctx,
			struct crossing_server **ret);

/* Answers request @token, unless its connection is gone: success if @why is NULL. */
void crossing_server_reply(struct crossing_server *s, uint64_t token, const struct err *why);

/* Closes everything and removes the socket, without calling anybody. Accepts NULL. */
void crossing_server_free(struct crossing_server *s);

#endif
