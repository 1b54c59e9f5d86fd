/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing of the agent protocol: a 32-bit big-endian payload length, then the payload.
 *
 * Sans-IO: takes bytes from a buffer, gives bytes to a buffer. Normative text:
 * docs/protocol-agent.md.
 */
#ifndef LIB_WIRE_FRAME_H
#define LIB_WIRE_FRAME_H

#include "lib/base/buf.h"

#define FRAME_HEADER_LEN 4

/*
 * Largest payload, of a request: the 4 MiB that arguments and environment may take as JSON
 * (AGENT_WORDS_ENCODED_MAX), and room for what else an app.add has. Every other message fits by its
 * own limits (agent.h); an app.add that does not is refused with -EMSGSIZE when it is framed. The
 * agent holds at most one frame of each connection in memory; what it sends itself is far smaller
 * (AGENT_REPLY_MAX), and the host holds no more than that.
 */
#define FRAME_PAYLOAD_MAX ((size_t)5 * 1024 * 1024)

#define FRAME_MAX (FRAME_HEADER_LEN + FRAME_PAYLOAD_MAX) /* a whole frame */

/* FRAME_INCOMPLETE: more bytes are needed. */
enum {
	FRAME_INCOMPLETE = 1,
};

/* Appends one frame. -EMSGSIZE if the payload is empty, too long or @out is full; -ENOMEM. */
int frame_append(struct buf *out, const void *payload, size_t len);

/*
 * Looks at the first frame of @in. 0 and the payload (borrowed from @in), FRAME_INCOMPLETE, or
 * -EBADMSG if the announced length is 0 or above FRAME_PAYLOAD_MAX: the stream is then useless.
 */
int frame_peek(const struct buf *in, const char **ret_payload, size_t *ret_len);

/*
 * How many bytes the first frame of @in still lacks: of its header, or, if that is there, of its
 * payload, as long as it says. 0 if none. For readers that must not take a byte behind the frame.
 */
size_t frame_missing(const struct buf *in);

/* Drops the frame that frame_peek() showed with payload length @len. */
void frame_consume(struct buf *in, size_t len);

#endif
