/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message of a stream connection to the agent, and the reply to it, behind which the
 * stream begins (docs/protocol-agent.md).
 */
#ifndef STAGE1_AGENT_FIRST_H
#define STAGE1_AGENT_FIRST_H

#include <json-c/json_object.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* The reply is {} or an error with its text; longer is not a reply. */
#define FIRST_REPLY_MAX ((size_t)2048)

/* Until it has come; generous, as the pod may be emulated. */
#define FIRST_REPLY_MS INT64_C(60000)

/*
 * Sends the request @method with @body, which is taken over, on the new connection @fd, which takes
 * that at once. 0 or -errno.
 */
int first_send(int fd, const char *method, struct json_object *body);

/*
 * Reads to the end of the reply and not one byte further; what has come of it is kept in @reply, of
 * FIRST_REPLY_MAX. 0: agreed; -EAGAIN while it is incomplete; -EPERM: refused, with the agent's
 * words in @why; other -errno: no reply, and @why is left alone.
 */
int first_receive(int fd, struct buf *reply, struct err *why);

#endif
