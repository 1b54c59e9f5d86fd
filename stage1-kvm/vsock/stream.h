/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: a vsock connection (conn.h) together with its host socket, in a bounded table.
 *
 * Host to guest there is no buffer: bytes go from the socket straight into the guest's receive
 * buffers when both sides are ready. Guest to host the bytes go from guest memory straight into the
 * socket; only what the socket does not take is kept in the stream's backlog, which is bounded by
 * the credit that was granted to the guest. Credit is granted from a budget, so the memory of all
 * backlogs together has a bound, too: the first streams get large buffers, later ones smaller.
 *
 * Streams that have something for the guest (a packet that is owed, or bytes of the host with
 * credit) stand in one queue, the ready queue, and are served in turn: no stream starves another.
 * stream_settle() is called after every event of a stream; it does the duties on the socket, puts
 * the stream into the queue or takes it out, and frees it at the end.
 *
 * Sockets are watched edge-triggered. `readable` remembers an edge until a read says EAGAIN.
 * Writability is watched only while there is a backlog, so a host program that reads does not wake
 * the device.
 *
 * A program that connects and never sends its line keeps its slot: who may connect to the pod's
 * socket may do more harm than that, so there is no time limit.
 *
 * The port on our side is generation * STREAMS_MAX + index: the table is found by index and a late
 * packet of an earlier connection meets a different port.
 */
#ifndef STAGE1_KVM_VSOCK_STREAM_H
#define STAGE1_KVM_VSOCK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/base/buf.h"
#include "lib/os/loop.h"
#include "stage1-kvm/vsock/conn.h"

/* Connections at a time. An app has three streams and the agent a few calls: some 300 apps. */
#define STREAMS_MAX 1024

/*
 * Receive buffer of one stream: enough for four of the 64 KiB packets that Linux sends, so that the
 * guest writes one while we forward another; and what even the last stream gets.
 */
#define STREAM_BUFFER_MAX (256u << 10)
#define STREAM_BUFFER_MIN (4u << 10)

/*
 * Granted on top of the minimum to all streams together. Each takes at most a sixteenth of what is
 * left, so the first 16 or so get the maximum and the table is full at 4 + 8 MiB.
 */
#define STREAM_BUDGET       (8u << 20)
#define STREAM_BUDGET_SHARE 16

/* Connections that wait for a guest that is not up yet; more are refused. */
#define STREAMS_WAITING_MAX 64

struct stream {
	struct conn conn;
	int fd; /* owned; -EBADF when the host side is closed */
	struct loop_watch watch;
	struct buf backlog; /* accepted from the guest, not taken by the socket yet */
	size_t window;      /* bytes to try in the next read, see device.c */
	bool readable;
	bool queued;
	uint32_t index;
	struct streams *table; /* borrowed */
	struct stream *next;   /* in the ready queue, or the list of free ones */
	struct stream *prev;   /* in the ready queue */
};

struct streams {
	struct loop *loop;    /* borrowed */
	struct stream *slot;  /* owned: max of them; untouched memory until they are used */
	uint32_t *generation; /* owned: per slot, for its next port */
	size_t max;
	size_t n;      /* in use */
	size_t n_ever; /* slots below this were used at some time */
	struct stream *free;
	struct stream *ready_head;
	struct stream *ready_tail;
	uint32_t budget; /* bytes left of STREAM_BUDGET */
	bool guest_up;   /* packets can be delivered: set by the device */
};

/* Prepares an empty table of at most @max streams (1 to STREAMS_MAX). 0, -EINVAL or -ENOMEM. */
int streams_init(struct streams *t, struct loop *loop, size_t max);

/* Closes all streams and frees the table. */
void streams_deinit(struct streams *t);

/*
 * Takes over a host socket, non-blocking, whose program is going to send its CONNECT line. -ENFILE
 * if the table is full, else -errno; @fd is consumed only on success.
 */
int streams_add(struct streams *t, int fd);

/* The stream with our port and the guest's port that the guest knows of, or NULL. */
struct stream *streams_find(struct streams *t, uint32_t local_port, uint32_t guest_port);

/* The stream to be served next, or NULL. It keeps its turn until stream_served(). */
struct stream *streams_next_ready(struct streams *t);

/* The guest lost its connections: ends those that it knew. */
void streams_guest_lost(struct streams *t);

/* Ends all streams, whatever their state. */
void streams_close_all(struct streams *t);

/*
 * Forwards @len accepted bytes in @iov of @n entries to the host, keeping in the backlog what the
 * socket does not take. -EFAULT if the memory is gone, -ENOMEM; a host that is gone is not an
 * error.
 */
int stream_forward(struct stream *s, const struct iovec *iov, size_t n, size_t len);

/* stream_settle() for the stream that had its turn: if it is still ready, it stands last now. */
void stream_served(struct stream *s);

/* Does what follows from the last event, see above. @s may be free afterwards. */
void stream_settle(struct stream *s);

#endif
