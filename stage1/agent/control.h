/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control connection to husk-agent: JSON-RPC requests out, replies and notifications in
 * (docs/protocol-agent.md).
 *
 * The agent is the pod's, so it may send anything. At most one message of it is held; an answer to
 * something that was not asked, a frame out of bounds or a malformed message ends the connection.
 */
#ifndef STAGE1_AGENT_CONTROL_H
#define STAGE1_AGENT_CONTROL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

/* Call ids: the caller chooses them below this; each can be outstanding once at a time. */
#define CONTROL_CALLS_MAX 256

/* Requests queued towards the agent: one full-size app.add for each app of a pod. */
#define CONTROL_OUT_MAX (AGENT_APPS_MAX * FRAME_MAX + 4096)

/* What is held of what the agent sends: its largest message. */
#define CONTROL_IN_MAX (FRAME_HEADER_LEN + (size_t)AGENT_REPLY_MAX)

struct control_ops {
	/* A reply to call @id; msg->kind is RPC_RESULT or RPC_ERROR. */
	void (*reply)(void *ctx, int id, const struct rpc_msg *msg);
	/* A notification. */
	void (*notification)(void *ctx, const struct rpc_msg *msg);
	/* The connection is useless; @why says so in one line. Called once, and last. */
	void (*closed)(void *ctx, const struct err *why);
};

struct control {
	struct loop *loop; /* NULL while closed */
	int fd;
	struct loop_watch watch;
	struct buf in, out;
	bool outstanding[CONTROL_CALLS_MAX];
	const struct control_ops *ops;
	void *ctx;
};

/* Takes over the connected, non-blocking @fd (also on failure). 0 or -errno. */
int control_open(struct control *c, struct loop *loop, int fd, const struct control_ops *ops,
		 void *ctx);

/*
 * Sends a request. @body is taken over, NULL stands for {}. -EBUSY if @id is outstanding, -ENOTCONN
 * if the connection is closed, -EMSGSIZE, -ENOMEM.
 */
int control_call(struct control *c, int id, const char *method, struct json_object *body);

/*
 * Sends agent.hello with @secret (AGENT_SECRET_LEN characters) as request @id. More may be sent
 * before its reply, as there is one version only. As control_call().
 */
int control_hello(struct control *c, int id, const char *secret);

/* Closes and frees; harmless on a zeroed or closed one. Does not call closed. */
void control_close(struct control *c);

#endif
