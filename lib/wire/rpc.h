/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 envelopes inside frames (https://www.jsonrpc.org/specification), without batches.
 *
 * Sans-IO. Either side may send requests; husk uses requests and notifications as
 * docs/protocol-agent.md says.
 */
#ifndef LIB_WIRE_RPC_H
#define LIB_WIRE_RPC_H

#include <json-c/json_object.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define RPC_METHOD_MAX     32  /* bytes of a method name */
#define RPC_ERROR_TEXT_MAX 512 /* bytes of an error message; longer ones are refused */
#define RPC_ID_MAX         INT64_C(0xffffffff) /* ids are integers from 0 to this */

/*
 * Objects and lists in a message. The messages with most are pod.setup, with all the routes and
 * rules that a pod can have, some 450, and app.add, with a mount for each. One takes two bytes on
 * the wire and some 800 in memory, so that a frame full of them would take 70 MiB.
 */
#define RPC_CONTAINERS_MAX 512

enum rpc_kind {
	RPC_REQUEST,      /* id, method, body = params */
	RPC_NOTIFICATION, /* method, body = params */
	RPC_RESULT,       /* id, body = result */
	RPC_ERROR,        /* id, code, text */
};

struct rpc_msg {
	enum rpc_kind kind;
	int64_t id;
	char method[RPC_METHOD_MAX + 1];
	struct json_object *body; /* owned; NULL if absent */
	int64_t code;             /* from INT32_MIN to INT32_MAX */
	char text[RPC_ERROR_TEXT_MAX + 1];
};

/*
 * Decodes one payload. 0 and *ret (rpc_msg_deinit()), -EBADMSG for anything that is not a message
 * within the limits, -ENOMEM.
 */
int rpc_decode(const char *payload, size_t len, struct rpc_msg *ret);

/*
 * Takes the first message out of @in. 0 and *ret as above; FRAME_INCOMPLETE if more bytes are
 * needed; -EMSGSIZE if @in has no room for them; -EBADMSG, -ENOMEM.
 */
int rpc_take(struct buf *in, struct rpc_msg *ret);

/* Frees what @m holds. Accepts NULL and an all-zero message. */
void rpc_msg_deinit(struct rpc_msg *m);

/*
 * Append one framed message to @out. @body is taken over, also on failure; NULL sends an empty
 * object. 0, -EMSGSIZE (payload or @out too large), -ENOMEM.
 */
int rpc_append_request(struct buf *out, int64_t id, const char *method, struct json_object *body);
int rpc_append_notification(struct buf *out, const char *method, struct json_object *body);
int rpc_append_result(struct buf *out, int64_t id, struct json_object *body);

/*
 * Appends a framed error; @text is made UTF-8 and cut to RPC_ERROR_TEXT_MAX bytes. Errors as above.
 */
int rpc_append_error(struct buf *out, int64_t id, int64_t code, const char *text);

#endif
