/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard streams of one process: pipes, or one terminal. The process has one side of each
 * (child_fds), the host gets the other as streams.
 */
#ifndef GUEST_AGENT_POD_STREAMS_H
#define GUEST_AGENT_POD_STREAMS_H

#include <errno.h>

#include "guest-agent/fault.h"
#include "guest-agent/pod/stream.h"
#include "lib/wire/agent.h"

struct streams {
	int child_fds[3]; /* the process's ends, until it has them */
	int devpts_fd;    /* detached devpts instance for the process to mount, or -EBADF */
	struct stream streams[AGENT_STREAM_COUNT_];
};

/* Nothing is open. */
void streams_init(struct streams *io);

/*
 * Opens what @p asks for. A terminal is made in the devpts instance @pts_fd, which is borrowed, or
 * in a new one if that is negative. 0 or -errno; after a failure streams_deinit() is still due.
 */
int streams_open(struct streams *io, struct loop *loop, const struct agent_process *p, int pts_fd);

/* Tells @fn(@ctx, ...) of keys at the terminal, if it is one, that are signals. */
void streams_watch_keys(struct streams *io, stream_key_fn fn, void *ctx);

/* Lets the streams outlive the connections that attach them. */
void streams_keep(struct streams *io);

/* Closes the process's side, once it has been forked. */
void streams_close_child_side(struct streams *io);

/* Closes everything; it is as after streams_init(). */
void streams_deinit(struct streams *io);

/* Whether the host may still get bytes of one: see stream_is_sending(). */
bool streams_any_sending(const struct streams *io);

/* Whether stream @kind of the process that @whom describes can be attached now. 0 or FAULT_SET. */
int streams_attach_check(const struct streams *io, enum agent_stream kind, const char *whom,
			 struct fault *f);

/* Sets the size of the terminal of the process that @whom describes. 0 or FAULT_SET. */
int streams_resize(const struct streams *io, int64_t rows, int64_t cols, const char *whom,
		   struct fault *f);

#endif
