/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte stream of an app: dials the agent, attaches, then pumps between the stream's connection
 * and the supervisor's own stdin, stdout, stderr or terminal, into the app's log, or both.
 *
 * States and what is allowed in them:
 *   DIALING    connecting; stream_app_exists() is remembered
 *   CONNECTED  waits for stream_app_exists(): the agent knows no stream of an unknown app
 *   ATTACHING  stream.attach is sent; only its reply may come, and nothing behind it is read with
 *              it
 *   FLOWING    raw bytes
 *   ENDED      the owner was told; only stream_close() is left
 */
#ifndef STAGE1_STREAMS_STREAM_H
#define STAGE1_STREAMS_STREAM_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "stage1/agent/dial.h"
#include "stage1/streams/applog.h"
#include "stage1/streams/log_credit.h"
#include "stage1/streams/relay.h"

enum stream_state {
	STREAM_DIALING,
	STREAM_CONNECTED,
	STREAM_ATTACHING,
	STREAM_FLOWING,
	STREAM_ENDED,
};

struct stream;

/* @why is NULL if the stream ended in good order. Called once. */
typedef void (*stream_end_fn)(void *ctx, struct stream *s, const struct err *why);

struct stream_plan {
	const struct agent_route *route;
	struct agent_attach attach;
	int in_fd, out_fd; /* borrowed; which are used depends on the kind of stream */
	struct applog
		*log; /* borrowed; of an output, beside out_fd or, if that is negative, alone */
	struct detach_keys *keys; /* borrowed; those that end it if they are typed; NULL: none */
};

struct stream {
	struct loop *loop; /* NULL while closed */
	enum stream_state state;
	bool app_exists;
	struct agent_attach attach;
	int in_fd, out_fd;
	struct applog *log;
	struct detach_keys *keys;
	uint64_t logged; /* chunks */
	bool flowed;     /* it has been FLOWING */
	bool left;       /* ended by its keys */
	bool lost;       /* some of its output */
	int fd;          /* the connection */
	struct dial dial;
	struct loop_watch watch;
	struct loop_timer limit; /* for the reply, once the app exists */
	struct buf reply;        /* what of it has come */
	struct relay out, in;
	struct log_credit valve; /* of output that is shown and logged */
	struct loop_timer later; /* what the valve holds is logged then */
	stream_end_fn ended;
	void *ctx;
};

/* Starts dialing. @s stays in place until stream_close(). 0 or -errno. */
int stream_open(struct stream *s, struct loop *loop, const struct stream_plan *plan,
		stream_end_fn ended, void *ctx);

/* Tells that the agent has the app now, so that the stream may be attached. */
void stream_app_exists(struct stream *s);

/* True while output of the app is held back by our own reader. */
bool stream_is_stalled(const struct stream *s);

/* True if the stream carries output that has not ended. */
bool stream_is_pending(const struct stream *s);

/* True if a file has not taken some of its output, which was said then. */
bool stream_has_lost(const struct stream *s);

/*
 * Of @n streams together: whether @is holds for any; and a number that grows whenever one comes on,
 * by a state or by bytes.
 */
bool stream_any(const struct stream *v, size_t n, bool (*is)(const struct stream *s));
uint64_t stream_sum_progress(const struct stream *v, size_t n);

/* Closes and frees; harmless on a zeroed or closed one. */
void stream_close(struct stream *s);

#endif
