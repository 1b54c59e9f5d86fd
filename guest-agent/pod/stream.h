/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of an app: pipes (or a terminal) on one side, a connection to the host on the other.
 *
 * Until a stream is attached its output waits in the pipe, and the app with it when the pipe is
 * full. A connection that ends also ends the stream: the app sees EPIPE or end of file. Unless the
 * stream is to be kept: then the app notices nothing, and the stream can be attached again.
 *
 * What was sent is on its way, in buffers of devices that end with the pod. So the connection of an
 * output that has ended stays open until the host, which has read it to its end, closes it.
 */
#ifndef GUEST_AGENT_POD_STREAM_H
#define GUEST_AGENT_POD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/os/loop.h"
#include "lib/wire/agent.h"

/*
 * Asked for with F_SETPIPE_SZ. Measured in a guest under emulation: 64 KiB costs up to a third of
 * the throughput, 1 MiB gains nothing over this.
 */
#define STREAM_PIPE_SIZE (256 * 1024)

/* Bytes held of each direction of a terminal; a terminal's own queue holds 4096. */
#define STREAM_TTY_BUF 4096

enum stream_state {
	STREAM_NONE,     /* the app has no such stream */
	STREAM_WAITING,  /* app side open, no connection yet */
	STREAM_ATTACHED, /* bytes flow */
	STREAM_SENT,     /* of an output: has ended, and the host has not closed yet */
	STREAM_DONE,     /* was attached; everything is closed; may not be attached again */
};

/*
 * Somebody has typed a key at a terminal that is signal @sig for the process group @foreground, a
 * number of the agent's PID namespace.
 */
typedef void (*stream_key_fn)(void *ctx, int sig, pid_t foreground);

struct stream_tty; /* the buffers of a terminal, while it is attached */

struct stream {
	enum stream_state state;
	enum agent_stream kind;
	struct loop *loop;
	int app_fd;  /* agent's end of the pipe, or the terminal's master; owned */
	int sock;    /* owned */
	bool to_app; /* direction of a pipe */
	bool keep;   /* when the host leaves: back to WAITING */
	bool end_in; /* but not of input that the host ends without leaving */
	struct loop_watch app_watch, sock_watch;
	struct stream_tty *tty;
	stream_key_fn on_key; /* of a terminal; NULL: nobody cares */
	void *key_ctx;
};

/* An absent stream. */
void stream_init(struct stream *s);

/*
 * Gives the stream, which is not kept at first, its app side: takes over @app_fd, which must be
 * non-blocking.
 */
void stream_open(struct stream *s, struct loop *loop, enum agent_stream kind, int app_fd);

/*
 * Connects a WAITING stream with @sock (non-blocking), which is taken over, also on failure.
 * 0 or -errno.
 */
int stream_attach(struct stream *s, int sock);

/* Whether the host may still get bytes: an output that it has attached and not closed. */
bool stream_is_sending(const struct stream *s);

/* Closes everything; the state becomes STREAM_NONE. */
void stream_deinit(struct stream *s);

#endif
