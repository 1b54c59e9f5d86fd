/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connections that become one: what comes from either goes to the other.
 *
 * Theory of operation. Each way has a buffer; what is in it waits for the target, and its source is
 * not read meanwhile. The end of a source is told to its target, behind all that came before, and
 * the other way goes on; when both have ended, so has the whole. A failure of either (a reset, for
 * TCP) is a failure of the whole, as soon as what came before it is with the other side, or cannot
 * be: then it is lost, as it is with one connection.
 *
 * A socket that is closed reads as one whose other side has just ended what it sends. It differs by
 * sending, which fails: that is tried, with nothing to send, when a source ends, and as long as one
 * cannot be read since its target is busy. So a process that dies in the middle of what it sends is
 * a failure, unless this side has ended before, when nobody can tell. Of TCP only the kernel knows
 * who is gone: keepalive probes (tcp(7)) tell it.
 *
 * Sockets are watched edge-triggered: all that can be done is done at each event.
 */
#ifndef LIB_NET_DUPLEX_H
#define LIB_NET_DUPLEX_H

#include <errno.h>

#include "lib/os/loop.h"

/*
 * Of each way. 64 MiB out of a guest under emulation took 1.4 s with 4 KiB, 0.8 s with 32, 0.6
 * with 64, and 0.4 s with 128.
 */
#define DUPLEX_BUFFER ((size_t)64 * 1024)

/* Buffers that one event moves each way, so that others get their turn. */
#define DUPLEX_TURNS_MAX 16

/* @error: 0 if both sides have ended in good order, or -errno. Called once, and last. */
typedef void (*duplex_end_fn)(void *ctx, int error);

struct duplex_way; /* a buffer, and what became of its source */

struct duplex {
	struct loop *loop; /* NULL while not running */
	int fds[2];        /* owned */
	struct loop_watch watches[2];
	struct loop_timer again; /* more can be moved */
	struct duplex_way *ways; /* owned; way N goes from fds[N] */
	duplex_end_fn ended;
	void *ctx;
};

#define DUPLEX_INIT ((struct duplex){ .fds = { -EBADF, -EBADF } })

/*
 * Joins the stream sockets @a and @b, non-blocking, connected or about to be, which are taken over,
 * also on failure. @ended is called from the loop; then both are closed already, after a failure
 * with a reset (TCP). @d stays in place until then, or until duplex_stop(). 0 or -errno.
 */
int duplex_start(struct duplex *d, struct loop *loop, int a, int b, duplex_end_fn ended, void *ctx);

/* Closes @fd, of TCP with a reset; harmless if it is negative. -EBADF. */
int duplex_cut(int fd);

/* Closes both as after a failure; harmless if it does not run. Does not call @ended. */
void duplex_stop(struct duplex *d);

#endif
