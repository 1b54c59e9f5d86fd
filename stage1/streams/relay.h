/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes from one descriptor to another without ever blocking the supervisor.
 *
 * Theory of operation. A relay joins a socket of ours (non-blocking) with a descriptor that was
 * inherited from the user's shell: a pipe, terminal, file or socket, whose O_NONBLOCK flag is
 * shared with other processes and therefore left alone. Between a socket and a pipe bytes are moved
 * by splice(2), which takes its own non-blocking flag. Everything else goes through one bounded
 * buffer and never writes more than PIPE_BUF bytes at a time to a descriptor that could block, and
 * only after poll(2) found it writable. A descriptor that epoll refuses (a regular file, /dev/null)
 * is always ready.
 *
 * A relay waits either for its source or for its target, never both: nothing is read that cannot be
 * written, so a reader that stops reading stops the source, and memory stays flat.
 *
 * What passes may be tapped, for a log. Then it goes through the buffer, and to a pipe that is not
 * ours through one that is: only splice(2) never blocks there, even if others write to that pipe,
 * too.
 *
 * A relay whose source is a keyboard may look for the keys that leave it (lib/wire/detach_keys.h).
 *
 * A relay works on duplicates of both: epoll knows a descriptor by its number, and the standard
 * output of a shell is the target of as many pumps as the pod has apps.
 */
#ifndef STAGE1_STREAMS_RELAY_H
#define STAGE1_STREAMS_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/os/loop.h"
#include "lib/wire/detach_keys.h"

#define RELAY_BUFFER_SIZE ((size_t)64 * 1024)

enum relay_end {
	RELAY_EOF,    /* the source ended and everything was written */
	RELAY_TARGET, /* the target cannot be written any more (reader gone) */
	RELAY_SOURCE, /* the source failed */
	RELAY_LEFT,   /* the keys for it were typed, and everything in front of them was written */
};

typedef void (*relay_end_fn)(void *ctx, enum relay_end end);

/* Sees bytes between their being read and their being written. */
typedef void (*relay_tap_fn)(void *ctx, const char *bytes, size_t len);

/* Bytes are lost: the file that they go to takes no more, now, for the reason errno @error. */
typedef void (*relay_loss_fn)(void *ctx, int error);

struct relay {
	struct loop *loop; /* NULL while not running */
	int from, to;      /* owned duplicates */
	bool use_splice;
	bool to_may_block; /* the target is not ours: write little, after poll */
	struct loop_watch from_watch, to_watch;
	bool from_pollable, to_pollable;
	bool at_eof;              /* the source has ended, the buffer may hold a rest */
	bool left;                /* so it was by the keys */
	uint64_t moves;           /* steps that moved bytes: whether it makes progress */
	char *mem;                /* owned, only without splice */
	struct detach_keys *keys; /* borrowed; NULL: none */
	size_t head, tail;
	int relay[2];   /* owned; our pipe on the way to one that is not, -EBADF: none */
	size_t relayed; /* bytes in it */
	relay_tap_fn tap;
	relay_loss_fn loss; /* NULL: that is the end */
	relay_end_fn ended;
	void *ctx;
};

/*
 * Starts moving bytes. @from and @to are not kept: they may be closed. Exactly one of them is our
 * own non-blocking socket: the target if @to_ours, else the source. @ended is called once, when no
 * more bytes will move. 0 or -errno.
 */
int relay_start(struct relay *p, struct loop *loop, int from, int to, bool to_ours,
		relay_end_fn ended, void *ctx);

/*
 * Has the relay, which was just started, look for @keys in what it reads; they outlive it. 0 or
 * -errno, and it is stopped.
 */
int relay_watch_keys(struct relay *p, struct detach_keys *keys);

/*
 * If the target is a file on a disk, what it does not take is dropped from now on, instead of being
 * the end. @loss is called each time.
 */
void relay_set_loss(struct relay *p, relay_loss_fn loss);

/*
 * Has @tap called, with the context of the relay, for all that the relay, which was just started,
 * reads. 0, or -errno: the relay goes on without.
 */
int relay_set_tap(struct relay *p, relay_tap_fn tap);

/* Stops and frees; harmless on a zeroed or ended relay. Does not call ended. */
void relay_stop(struct relay *p);

/* True if the relay runs and waits for its target to take bytes. */
bool relay_is_stalled(const struct relay *p);

#endif
