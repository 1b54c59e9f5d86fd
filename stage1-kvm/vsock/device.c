/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/device.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "stage1-kvm/vsock/iov.h"
#include "stage1-kvm/vsock/packet.h"
#include "stage1-kvm/vsock/stream.h"
#include "stage1-kvm/vsock/virtq.h"

/* Chains of one queue that are worked off before other descriptors get their turn. */
#define PORTION_MAX 256

/* Connections accepted in one turn. */
#define ACCEPT_MAX 16

/* Wait before accepting again after a failure such as a full file table. */
#define ACCEPT_RETRY_NS (100 * NS_PER_MS)

/* RSTs waiting for receive buffers, for connections we do not know; then the tx queue waits. */
#define REPLIES_MAX 64

/* Room for a report; the texts in virtq.c are much shorter. */
#define REPORT_MAX 256

/*
 * Bytes read from one host socket at a time. A stream begins with the smallest window; a read that
 * fills it doubles it, one that does not halves it, so that short messages do not cost the set-up
 * of many receive buffers. The largest is also the length of a turn.
 */
#define WINDOW_MIN (4u << 10)
#define WINDOW_MAX (64u << 10)

/* Receive buffers of one read: Linux offers 4 KiB each, so 64 KiB need 18. */
#define BATCH_MAX 32

/* Pieces of all receive buffers of one read; one chain always fits in. */
#define BATCH_IOV_MAX (VIRTQ_IOV_MAX + 2 * BATCH_MAX)

struct queue {
	struct virtq vq;
	bool running;
	bool stopped; /* stopped_at is valid */
	uint16_t stopped_at;
	bool kicked; /* there may be something in it */
	int kick_fd; /* owned, -EBADF while unset; as are the next two */
	int call_fd;
	int err_fd;
	struct loop_watch kick_watch;
	struct device_queue_plan plan;
};

struct reply {
	uint32_t local_port;
	uint32_t guest_port;
};

struct device {
	struct loop *loop;
	struct device_config config;
	struct loop_watch listen_watch;
	struct loop_timer listen_retry;
	struct loop_timer again; /* expires at once: there is more work */
	struct guest_memory memory;
	struct queue queue[DEVICE_QUEUES];
	struct streams streams;
	struct reply replies[REPLIES_MAX]; /* a ring */
	size_t first_reply;
	size_t n_replies;
	bool broken;
	unsigned n_reports;
};

/* The receive buffers taken for one read. */
struct batch {
	size_t n;
	size_t n_pieces;
	size_t n_payload;
	size_t len; /* payload bytes */
	struct {
		struct virtq_chain chain;
		struct iovec *pieces;
		size_t payload; /* bytes */
	} buffer[BATCH_MAX];
	struct iovec pieces[BATCH_IOV_MAX];
	struct iovec payload[BATCH_IOV_MAX];
};

static void on_listener(void *ctx, uint32_t events);

static int watch_listener(struct device *d)
{
	return loop_watch_add(d->loop, &d->listen_watch, d->config.listen_fd, EPOLLIN, on_listener,
			      d);
}

int device_new(struct loop *loop, const struct device_config *config, struct device **ret)
{
	struct device *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->loop = loop;
	d->config = *config;
	d->listen_watch = LOOP_WATCH_INIT;
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct queue *q = &d->queue[i];
		q->kick_fd = q->call_fd = q->err_fd = -EBADF;
		q->kick_watch = LOOP_WATCH_INIT;
	}
	int r = streams_init(&d->streams, loop, config->max_streams);
	if (r == 0 && config->listen_fd >= 0)
		r = watch_listener(d);
	if (r < 0) {
		device_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void device_free(struct device *d)
{
	if (!d)
		return;
	device_reset(d);
	streams_deinit(&d->streams);
	loop_watch_remove(&d->listen_watch);
	loop_timer_disarm(&d->listen_retry);
	loop_timer_disarm(&d->again);
	free(d);
}

/* A queue or session that begins anew belongs to a driver that knows no connections. */
static void forget_guest(struct device *d)
{
	d->n_replies = 0;
	streams_guest_lost(&d->streams);
}

void device_reset(struct device *d)
{
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct queue *q = &d->queue[i];
		device_stop_queue(d, i);
		loop_watch_remove(&q->kick_watch);
		fd_replace(&q->kick_fd, -EBADF);
		fd_replace(&q->call_fd, -EBADF);
		fd_replace(&q->err_fd, -EBADF);
		q->stopped = false;
	}
	forget_guest(d);
	guest_memory_deinit(&d->memory);
	d->broken = false;
}

/* A full counter means that the VMM was told often enough. */
static void signal_event(int fd)
{
	const uint64_t one = 1;
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

static void report_broken(struct device *d, const struct queue *q)
{
	char text[REPORT_MAX];
	if (d->n_reports++ >= DEVICE_REPORTS_MAX)
		return;
	snprintf(text, sizeof(text),
		 "guest broke queue %d: %s: connections closed until the guest resets the device",
		 (int)(q - d->queue), q->vq.broken);
	d->config.report(text);
}

static void break_device(struct device *d, struct queue *q)
{
	report_broken(d, q);
	d->broken = true;
	d->streams.guest_up = false;
	d->n_replies = 0;
	streams_close_all(&d->streams);
	signal_event(q->err_fd);
}

/* Lays a running queue onto memory, or finds it broken: the guest chooses where its queues are. */
static void place_queue(struct device *d, struct queue *q)
{
	const struct device_queue_plan *p = &q->plan;
	struct virtq_areas at;
	if (q->vq.broken)
		return;
	if (virtq_locate(&d->memory, p->size, p->desc, p->avail, p->used, &at) == 0) {
		virtq_move(&q->vq, &d->memory, &at);
		return;
	}
	q->vq.broken = "it is not inside of memory, not aligned, or of a wrong size";
	break_device(d, q);
}

void device_set_memory(struct device *d, struct guest_memory *m)
{
	guest_memory_deinit(&d->memory);
	d->memory = *m;
	*m = GUEST_MEMORY_INIT;
	for (size_t i = 0; i < DEVICE_QUEUES; i++)
		if (d->queue[i].running)
			place_queue(d, &d->queue[i]);
}

void device_start_queue(struct device *d, size_t index, const struct device_queue_plan *plan)
{
	struct queue *q = &d->queue[index];
	bool starts = !q->running;
	q->plan = *plan;
	if (starts) {
		if (!d->queue[DEVICE_RX].running && !d->queue[DEVICE_TX].running)
			d->broken = false;
		if (q->stopped && q->stopped_at != plan->base)
			forget_guest(d);
		virtq_init(&q->vq, plan->size, plan->base, plan->features);
		q->running = true;
		q->kicked = true;
	}
	place_queue(d, q);
	if (starts && !q->vq.broken)
		virtq_start(&q->vq);
	d->streams.guest_up = d->queue[DEVICE_RX].running && !d->broken;
}

uint16_t device_stop_queue(struct device *d, size_t index)
{
	struct queue *q = &d->queue[index];
	if (q->running) {
		q->stopped_at = q->vq.next_avail;
		q->stopped = true;
	}
	q->running = false;
	if (index == DEVICE_RX)
		d->streams.guest_up = false;
	return q->stopped ? q->stopped_at : 0;
}

static void on_kick(void *ctx, uint32_t events)
{
	struct queue *q = ctx;
	(void)events;
	q->kicked = true;
}

int device_set_kick(struct device *d, size_t index, int fd)
{
	struct queue *q = &d->queue[index];
	loop_watch_remove(&q->kick_watch);
	fd_replace(&q->kick_fd, fd);
	if (fd < 0)
		return 0;
	/* Edge-triggered, so that the counter need not be read. */
	return loop_watch_add(d->loop, &q->kick_watch, fd, EPOLLIN | EPOLLET, on_kick, q);
}

/* A descriptor that we write to. Blocking there would be at the mercy of the VMM. */
static int set_event_fd(int *slot, int fd)
{
	fd_replace(slot, fd);
	return fd < 0 ? 0 : fd_set_nonblock(fd, true);
}

int device_set_call(struct device *d, size_t index, int fd)
{
	return set_event_fd(&d->queue[index].call_fd, fd);
}

int device_set_err(struct device *d, size_t index, int fd)
{
	return set_event_fd(&d->queue[index].err_fd, fd);
}

int device_add_host(struct device *d, int fd)
{
	if (d->broken)
		return -ENODEV;
	return streams_add(&d->streams, fd);
}

static void on_accept_retry(void *ctx)
{
	struct device *d = ctx;
	if (watch_listener(d) < 0)
		loop_timer_arm(d->loop, &d->listen_retry, clock_monotonic_ns() + ACCEPT_RETRY_NS,
			       on_accept_retry, d);
}

static bool is_accept_pressure(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void on_listener(void *ctx, uint32_t events)
{
	struct device *d = ctx;
	(void)events;
	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = accept4(d->config.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && is_accept_pressure(errno)) {
			loop_watch_remove(&d->listen_watch);
			loop_timer_arm(d->loop, &d->listen_retry,
				       clock_monotonic_ns() + ACCEPT_RETRY_NS, on_accept_retry, d);
		}
		if (fd < 0)
			return;
		if (device_add_host(d, fd) < 0)
			fd_close(fd);
	}
}

/* --- packets of the guest: the tx queue --- */

static void add_reply(struct device *d, const struct vsock_header *h)
{
	size_t at = (d->first_reply + d->n_replies++) % REPLIES_MAX;
	d->replies[at] = (struct reply){ .local_port = h->dst_port, .guest_port = h->src_port };
}

/* The guest cannot speak for others, and there is nobody but the host to speak to. */
static bool is_between_us(const struct device *d, const struct vsock_header *h)
{
	return h->src_cid == d->config.guest_cid && h->dst_cid == VSOCK_CID_HOST;
}

/* One packet. There is room for one more reply. 0 or -errno. */
static int take_packet(struct device *d, const struct iovec *iov, const struct virtq_chain *chain)
{
	unsigned char wire[VSOCK_HEADER_SIZE];
	struct vsock_header h;
	if (iov_to_mem(iov, chain->n_out, wire, sizeof(wire)) < sizeof(wire))
		return 0;
	vsock_header_decode(wire, &h);
	if (!is_between_us(d, &h))
		return 0;
	bool fits = h.len <= chain->out_len - sizeof(wire);
	struct stream *s = streams_find(&d->streams, h.dst_port, h.src_port);
	if (!s || h.type != VSOCK_TYPE_STREAM || !fits) {
		if (h.op != VSOCK_OP_RST)
			add_reply(d, &h);
		return 0;
	}
	uint32_t len = conn_on_packet(&s->conn, &h);
	int r = 0;
	if (len > 0) {
		struct iovec payload[VIRTQ_IOV_MAX];
		size_t n = iov_slice(iov, chain->n_out, sizeof(wire), len, payload);
		r = stream_forward(s, payload, n, len);
	}
	stream_settle(s);
	return r;
}

/* Works off up to a portion. True in *@ret_more if some is left that need not be waited for. */
static int relay_tx(struct device *d, bool *ret_more)
{
	struct queue *q = &d->queue[DEVICE_TX];
	struct iovec iov[VIRTQ_IOV_MAX];
	struct virtq_chain chain;
	virtq_spare_kicks(&q->vq);
	for (int i = 0; i < PORTION_MAX && d->n_replies < REPLIES_MAX; i++) {
		int r = virtq_pop(&q->vq, iov, ARRAY_SIZE(iov), &chain);
		if (r == VIRTQ_E_EMPTY && virtq_want_kicks(&q->vq))
			continue;
		if (r == VIRTQ_E_EMPTY) {
			q->kicked = false;
			return 0;
		}
		if (r == 0)
			r = take_packet(d, iov, &chain);
		if (r < 0)
			return r;
		virtq_push(&q->vq, chain.head, 0);
	}
	/* With all replies pending the guest has to give us receive buffers first. */
	*ret_more = d->n_replies < REPLIES_MAX;
	return 0;
}

/* --- packets for the guest: the rx queue --- */

static void fill_cids(const struct device *d, struct vsock_header *h)
{
	h->src_cid = VSOCK_CID_HOST;
	h->dst_cid = d->config.guest_cid;
}

/* Writes the header into a receive buffer and returns the buffer with @payload bytes. */
static void finish_buffer(struct device *d, const struct iovec *pieces,
			  const struct virtq_chain *chain, struct vsock_header *h)
{
	unsigned char wire[VSOCK_HEADER_SIZE];
	fill_cids(d, h);
	vsock_header_encode(h, wire);
	iov_from_mem(pieces + chain->n_out, chain->n_in, wire, sizeof(wire));
	virtq_push(&d->queue[DEVICE_RX].vq, chain->head, VSOCK_HEADER_SIZE + h->len);
}

/* Takes a receive buffer, which must hold a header and a byte. As virtq_pop(). */
static int take_buffer(struct device *d, struct iovec *iov, size_t max, struct virtq_chain *ret)
{
	struct virtq *vq = &d->queue[DEVICE_RX].vq;
	int r = virtq_pop(vq, iov, max, ret);
	if (r == 0 && ret->in_len <= VSOCK_HEADER_SIZE) {
		vq->broken = "receive buffer without room for a packet";
		return -EPROTO;
	}
	return r;
}

static int send_reply(struct device *d)
{
	struct iovec iov[VIRTQ_IOV_MAX];
	struct virtq_chain chain;
	int r = take_buffer(d, iov, ARRAY_SIZE(iov), &chain);
	if (r != 0)
		return r;
	const struct reply *to = &d->replies[d->first_reply];
	struct vsock_header h = { .src_port = to->local_port,
				  .dst_port = to->guest_port,
				  .type = VSOCK_TYPE_STREAM,
				  .op = VSOCK_OP_RST };
	d->first_reply = (d->first_reply + 1) % REPLIES_MAX;
	d->n_replies--;
	finish_buffer(d, iov, &chain, &h);
	return 0;
}

static int send_owed(struct device *d, struct stream *s)
{
	struct iovec iov[VIRTQ_IOV_MAX];
	struct virtq_chain chain;
	struct vsock_header h;
	int r = take_buffer(d, iov, ARRAY_SIZE(iov), &chain);
	if (r != 0)
		return r;
	if (conn_next_packet(&s->conn, &h))
		finish_buffer(d, iov, &chain, &h);
	else
		virtq_unpop(&d->queue[DEVICE_RX].vq, 1);
	return 0;
}

/* Takes receive buffers for up to @want bytes. VIRTQ_E_EMPTY if there is none. */
static int collect_buffers(struct device *d, size_t want, struct batch *b)
{
	b->n = b->n_pieces = b->n_payload = b->len = 0;
	while (b->len < want && b->n < BATCH_MAX && BATCH_IOV_MAX - b->n_pieces >= VIRTQ_IOV_MAX) {
		struct virtq_chain chain;
		struct iovec *pieces = b->pieces + b->n_pieces;
		int r = take_buffer(d, pieces, BATCH_IOV_MAX - b->n_pieces, &chain);
		if (r == VIRTQ_E_EMPTY && b->n > 0)
			break;
		if (r != 0)
			return r;
		size_t room = MIN(chain.in_len - VSOCK_HEADER_SIZE, want - b->len);
		b->n_payload += iov_slice(pieces + chain.n_out, chain.n_in, VSOCK_HEADER_SIZE, room,
					  b->payload + b->n_payload);
		b->buffer[b->n].chain = chain;
		b->buffer[b->n].pieces = pieces;
		b->buffer[b->n].payload = room;
		b->n_pieces += chain.n_out + chain.n_in;
		b->len += room;
		b->n++;
	}
	return 0;
}

/* Returns buffers with the @len bytes that were read, and takes back the rest. */
static void send_buffers(struct device *d, struct stream *s, struct batch *b, size_t len)
{
	size_t i = 0;
	for (; i < b->n && len > 0; i++) {
		struct vsock_header h;
		uint32_t part = (uint32_t)MIN(len, b->buffer[i].payload);
		conn_make_data(&s->conn, part, &h);
		finish_buffer(d, b->buffer[i].pieces, &b->buffer[i].chain, &h);
		len -= part;
	}
	virtq_unpop(&d->queue[DEVICE_RX].vq, (uint16_t)(b->n - i));
}

static void adapt_window(struct stream *s, size_t asked, size_t got)
{
	if (got == asked && s->window < WINDOW_MAX)
		s->window *= 2;
	else if (got < asked && s->window > WINDOW_MIN)
		s->window /= 2;
}

/* Reads from the host socket straight into receive buffers. */
static int send_bytes(struct device *d, struct stream *s)
{
	struct batch b;
	s->window = MAX(s->window, (size_t)WINDOW_MIN);
	int r = collect_buffers(d, MIN(s->window, (size_t)conn_credit(&s->conn)), &b);
	if (r != 0 || b.n == 0)
		return r;
	ssize_t n = readv(s->fd, b.payload, (int)b.n_payload);
	int error = errno;
	send_buffers(d, s, &b, n > 0 ? (size_t)n : 0);
	if (n > 0) {
		adapt_window(s, b.len, (size_t)n);
	} else if (n == 0) {
		conn_on_host_eof(&s->conn);
	} else if (error == EAGAIN) {
		s->readable = false;
	} else if (error == EFAULT) {
		return -EFAULT;
	} else if (error != EINTR) {
		conn_on_host_gone(&s->conn);
	}
	return 0;
}

/* One packet or one read. VIRTQ_E_EMPTY without receive buffers. */
static int send_something(struct device *d)
{
	if (d->n_replies > 0)
		return send_reply(d);
	struct stream *s = streams_next_ready(&d->streams);
	int r = conn_owes_packet(&s->conn) ? send_owed(d, s) : send_bytes(d, s);
	if (r == 0)
		stream_served(s);
	return r;
}

static bool has_something(struct device *d)
{
	return d->n_replies > 0 || streams_next_ready(&d->streams);
}

static int relay_rx(struct device *d, bool *ret_more)
{
	struct queue *q = &d->queue[DEVICE_RX];
	virtq_spare_kicks(&q->vq);
	for (int i = 0; i < PORTION_MAX; i++) {
		if (!has_something(d))
			return 0;
		int r = send_something(d);
		if (r == VIRTQ_E_EMPTY && virtq_want_kicks(&q->vq))
			continue;
		if (r == VIRTQ_E_EMPTY) {
			q->kicked = false;
			return 0;
		}
		if (r < 0)
			return r;
	}
	*ret_more = true;
	return 0;
}

/* --- both --- */

static void on_again(void *ctx)
{
	(void)ctx;
}

static void device_publish(struct device *d)
{
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct queue *q = &d->queue[i];
		if (q->running && !q->vq.broken && virtq_publish(&q->vq))
			signal_event(q->call_fd);
	}
}

/* Runs one direction. A broken queue ends all but is not a failure of ours. */
static int relay_queue(struct device *d, size_t index,
		       int (*relay)(struct device *d, bool *ret_more), bool *ret_more)
{
	struct queue *q = &d->queue[index];
	if (!q->running || !q->kicked || d->broken)
		return 0;
	int r = relay(d, ret_more);
	if (r != -EPROTO)
		return r;
	break_device(d, q);
	return 0;
}

int device_pump(struct device *d)
{
	bool more = false;
	int r = relay_queue(d, DEVICE_TX, relay_tx, &more);
	bool full = d->n_replies == REPLIES_MAX;
	if (r == 0)
		r = relay_queue(d, DEVICE_RX, relay_rx, &more);
	device_publish(d);
	if (more || (full && d->n_replies < REPLIES_MAX))
		loop_timer_arm(d->loop, &d->again, 0, on_again, d);
	return r;
}
