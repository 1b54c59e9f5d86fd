/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The first of the queue is sent as one request; its answer, whatever it says,
 * takes it out, as the same event would get the same answer again. No connection, one that ends and
 * one that does not answer in time count as tries: after a while the event is sent again, over a
 * new connection; after PUBLISHER_TRIES it is given up.
 */
#include "shim/events/publisher.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "shim/proto/pack.h"
#include "shim/ttrpc/frame.h"
#include "shim/ttrpc/message.h"

#define SERVICE "containerd.services.events.ttrpc.v1.Events"
#define METHOD  "Forward"

struct event {
	struct event *next;
	size_t len;
	uint8_t request[]; /* a packed task.ForwardRequest */
};

struct publisher {
	struct loop *loop;
	const char *path, *ns;
	int fd; /* -EBADF: not connected */
	struct loop_watch watch;
	struct loop_timer timer; /* of the answer, or of the next try */
	struct ttrpc_reader reader;
	struct buf out;
	uint32_t stream;
	bool sent; /* the first event was, over this connection */
	unsigned tries;
	struct event *first, **end;
	size_t n;
};

static void publisher_next(struct publisher *p);

static void disconnect(struct publisher *p)
{
	loop_watch_remove(&p->watch);
	ttrpc_reader_deinit(&p->reader);
	buf_deinit(&p->out);
	p->fd = fd_close(p->fd);
	p->sent = false;
	p->stream = 1;
}

static void drop_first(struct publisher *p)
{
	struct event *event = p->first;
	p->first = event->next;
	if (!p->first)
		p->end = &p->first;
	p->n--;
	p->tries = 0;
	p->sent = false;
	free(event);
}

static void on_again(void *ctx)
{
	publisher_next(ctx);
}

/* This try has failed. */
static void publisher_fail(struct publisher *p)
{
	disconnect(p);
	if (++p->tries >= PUBLISHER_TRIES)
		drop_first(p);
	if (p->first)
		loop_timer_arm(p->loop, &p->timer,
			       clock_monotonic_ns() + PUBLISHER_AGAIN_MS * NS_PER_MS, on_again, p);
}

static void on_late(void *ctx)
{
	publisher_fail(ctx);
}

/* False if the connection is over. */
static bool publisher_send(struct publisher *p)
{
	if (unix_send_buf(p->fd, &p->out) < 0)
		return false;
	loop_watch_modify(&p->watch, EPOLLIN | (buf_len(&p->out) > 0 ? EPOLLOUT : 0));
	return true;
}

static bool publisher_receive(struct publisher *p)
{
	size_t n = 0;
	int r = unix_recv_buf(p->fd, &p->reader.in, ttrpc_reader_missing(&p->reader), &n);
	return r == -EAGAIN || n > 0;
}

/* The answer to what was sent takes it out of the queue. */
static void publisher_take(struct publisher *p)
{
	struct ttrpc_header h;
	const uint8_t *data;
	int r;
	bool answered = false;
	while ((r = ttrpc_reader_next(&p->reader, &h, &data)) != TTRPC_INCOMPLETE) {
		answered |= p->sent && h.type == TTRPC_RESPONSE && h.stream == p->stream;
		if (r == 0)
			ttrpc_reader_drop(&p->reader, h.len);
	}
	if (!answered)
		return;
	p->stream += 2;
	loop_timer_disarm(&p->timer);
	drop_first(p);
	publisher_next(p);
}

static void on_containerd(void *ctx, uint32_t events)
{
	struct publisher *p = ctx;
	bool alive = !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || publisher_receive(p);
	if (alive)
		publisher_take(p);
	if (alive && p->fd >= 0)
		alive = publisher_send(p);
	if (alive)
		return;
	if (p->sent)
		publisher_fail(p);
	else
		disconnect(p); /* nothing was asked of it: containerd was ended meanwhile */
}

static int publisher_connect(struct publisher *p)
{
	int fd = unix_connect(p->path);
	if (fd < 0)
		return fd;
	int r = loop_watch_add(p->loop, &p->watch, fd, EPOLLIN, on_containerd, p);
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	p->fd = fd;
	return 0;
}

/* Sends the first of the queue. */
static void publisher_next(struct publisher *p)
{
	if (!p->first || p->sent)
		return;
	if (p->fd < 0 && publisher_connect(p) < 0) {
		publisher_fail(p);
		return;
	}
	if (ttrpc_request_append(&p->out, p->stream, SERVICE, METHOD, p->first->request,
				 p->first->len) < 0) {
		publisher_fail(p);
		return;
	}
	p->sent = true;
	loop_timer_arm(p->loop, &p->timer, clock_monotonic_ns() + PUBLISHER_REPLY_MS * NS_PER_MS,
		       on_late, p);
	loop_watch_modify(&p->watch, EPOLLIN | EPOLLOUT);
}

int publisher_new(struct loop *loop, const char *path, const char *ns, struct publisher **ret)
{
	struct publisher *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct publisher){
		.loop = loop,
		.path = path ? path : "",
		.ns = ns,
		.fd = -EBADF,
		.watch = LOOP_WATCH_INIT,
		.stream = 1,
		.end = &p->first,
	};
	ttrpc_reader_init(&p->reader);
	buf_init(&p->out, TTRPC_FRAME_MAX);
	*ret = p;
	return 0;
}

static struct event *pack_event(const struct publisher *p, const char *topic, const char *type,
				const ProtobufCMessage *message)
{
	size_t len = 0;
	cleanup_free uint8_t *bytes = proto_pack(message, &len);
	if (!bytes)
		return NULL;
	Task__Timestamp time = proto_timestamp(clock_realtime_ns());
	Task__Any any;
	Task__Envelope envelope;
	Task__ForwardRequest request;
	task__any__init(&any);
	task__envelope__init(&envelope);
	task__forward_request__init(&request);
	any.type_url = proto_text(type);
	any.value.data = bytes;
	any.value.len = len;
	envelope.timestamp = &time;
	envelope.namespace_ = proto_text(p->ns);
	envelope.topic = proto_text(topic);
	envelope.event = &any;
	request.envelope = &envelope;
	size_t size = task__forward_request__get_packed_size(&request);
	struct event *event = malloc(sizeof(*event) + size);
	if (!event)
		return NULL;
	event->next = NULL;
	event->len = task__forward_request__pack(&request, event->request);
	return event;
}

void publisher_publish(struct publisher *p, const char *topic, const char *type,
		       const ProtobufCMessage *message)
{
	struct event *event = *p->path ? pack_event(p, topic, type, message) : NULL;
	if (!event || p->n == PUBLISHER_QUEUE_MAX) {
		free(event);
		return;
	}
	*p->end = event;
	p->end = &event->next;
	p->n++;
	if (p->n == 1)
		publisher_next(p);
}

bool publisher_is_idle(const struct publisher *p)
{
	return !p->first;
}

void publisher_free(struct publisher *p)
{
	if (!p)
		return;
	disconnect(p);
	loop_timer_disarm(&p->timer);
	while (p->first)
		drop_first(p);
	free(p);
}
