/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of stage1/apps/app_request.h: a unix socket in the pod directory, and for
 * each connection one request and one reply.
 */
#ifndef STAGE1_SUPERVISE_REQUEST_SERVER_H
#define STAGE1_SUPERVISE_REQUEST_SERVER_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1/apps/app_request.h"

/* Connections at a time; further ones wait in the kernel until one of these has ended. */
#define APP_REQUEST_CLIENTS_MAX 32

/* For a connection to send its request. */
#define APP_REQUEST_REQUEST_MS INT64_C(10000)

struct request_server_ops {
	/*
	 * Acts on a request. Whether at once or later, request_server_reply() is called with
	 * @token, which is never 0, once.
	 */
	void (*request)(void *ctx, const struct app_request *q, uint64_t token);
	/* Whoever sent request @token has left without waiting: it needs no reply. */
	void (*gone)(void *ctx, uint64_t token);
};

struct request_server;

/* Listens on POD_FILE_CONTROL in the working directory. 0 or -errno. */
int request_server_new(struct loop *loop, const struct request_server_ops *ops, void *ctx,
		       struct request_server **ret);

/* Answers request @token, unless its connection is gone: success if @why is NULL. */
void request_server_reply(struct request_server *s, uint64_t token, const struct err *why);

/* Closes everything and removes the socket, without calling anybody. Accepts NULL. */
void request_server_free(struct request_server *s);

#endif
