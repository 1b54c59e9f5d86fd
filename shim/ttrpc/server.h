/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of ttrpc on a unix socket, in a loop. Requests are answered at any time and in any
 * order, so that one that waits holds up no other; a client that goes takes its requests with it.
 */
#ifndef SHIM_TTRPC_SERVER_H
#define SHIM_TTRPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/os/loop.h"
#include "shim/ttrpc/frame.h"
#include "shim/ttrpc/message.h"

/* containerd has a connection for each task of a pod. Who comes when all are taken waits. */
#define TTRPC_CLIENTS_MAX 512

/*
 * Requests that wait for their answers: one for each process whose end somebody waits for, and
 * more.
 */
#define TTRPC_CALLS_MAX 4096

/* Of answers that a client has not read; what comes on top ends its connection. */
#define TTRPC_UNREAD_MAX (2 * TTRPC_FRAME_MAX)

struct ttrpc_server;

/*
 * What is done with a request, which is borrowed for the call: sooner or later
 * ttrpc_server_answer() or ttrpc_server_refuse() with its @token.
 */
typedef void (*ttrpc_handler)(void *ctx, uint64_t token, const struct ttrpc_request *q);

/*
 * Serves @fd, a listening socket (non-blocking; the server's from now on) in @loop. Who connects
 * must be root or our user. 0 or -errno.
 */
int ttrpc_server_new(struct loop *loop, int fd, ttrpc_handler handler, void *ctx,
		     struct ttrpc_server **ret);

/* Answers with @len bytes of @payload. A token of which nobody waits any more is no error. */
void ttrpc_server_answer(struct ttrpc_server *s, uint64_t token, const uint8_t *payload,
			 size_t len);

/* True if somebody still waits for the answer to @token. */
bool ttrpc_server_waits(const struct ttrpc_server *s, uint64_t token);

/* Answers with an error. */
void ttrpc_server_refuse(struct ttrpc_server *s, uint64_t token, enum ttrpc_code code,
			 const char *why);

/* True if no answer is left that a client has not taken. */
bool ttrpc_server_is_flushed(const struct ttrpc_server *s);

/* Ends all connections. Accepts NULL. */
void ttrpc_server_free(struct ttrpc_server *s);

#endif
