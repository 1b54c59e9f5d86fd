/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A connection is read frame by frame; each request becomes a call with a
 * token, until it is answered. Tokens are never used twice, so an answer to a call whose connection
 * is gone finds nothing. A connection is freed from its own event handler only: what fails while an
 * answer is added marks it as broken, and its next event, which is asked for then, ends it.
 */
#include "shim/ttrpc/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"

#define READ_MAX     ((size_t)64 * 1024) /* bytes taken at a time: others want to be served, too */
#define UNREAD_PAUSE ((size_t)64 * 1024) /* of answers, with which nothing more is read */

struct client {
	struct ttrpc_server *server;
	struct client *next;
	int fd;
	struct loop_watch watch;
	struct ttrpc_reader reader;
	struct buf out;
	bool broken;
};

struct call {
	uint64_t token;
	struct client *client;
	uint32_t stream;
};

struct ttrpc_server {
	struct loop *loop;
	int fd;
	struct loop_watch accept;
	ttrpc_handler handler;
	void *ctx;
	struct client *clients;
	size_t n_clients;
	uint64_t last_token;
	struct call *calls; /* owned; in no order */
	size_t n_calls, alloc;
};

static void watch_listener(struct ttrpc_server *s)
{
	loop_watch_modify(&s->accept, s->n_clients < TTRPC_CLIENTS_MAX ? EPOLLIN : 0);
}

/* ---- calls ---- */

static int call_add(struct client *c, uint32_t stream, uint64_t *ret)
{
	struct ttrpc_server *s = c->server;
	if (s->n_calls == TTRPC_CALLS_MAX)
		return -E2BIG;
	if (s->n_calls == s->alloc) {
		size_t alloc = MAX(2 * s->alloc, (size_t)16);
		struct call *calls = reallocarray(s->calls, alloc, sizeof(*calls));
		if (!calls)
			return -ENOMEM;
		s->calls = calls;
		s->alloc = alloc;
	}
	*ret = ++s->last_token;
	s->calls[s->n_calls++] = (struct call){ *ret, c, stream };
	return 0;
}

static void calls_drop(struct client *c)
{
	struct ttrpc_server *s = c->server;
	for (size_t i = s->n_calls; i-- > 0;)
		if (s->calls[i].client == c)
			s->calls[i] = s->calls[--s->n_calls];
}

/* Takes the call @token out. False if nobody waits for it. */
static bool call_take(struct ttrpc_server *s, uint64_t token, struct call *ret)
{
	for (size_t i = 0; i < s->n_calls; i++) {
		if (s->calls[i].token != token)
			continue;
		*ret = s->calls[i];
		s->calls[i] = s->calls[--s->n_calls];
		return true;
	}
	return false;
}

/* ---- connections ---- */

static void client_free(struct client *c)
{
	struct ttrpc_server *s = c->server;
	struct client **at = &s->clients;
	calls_drop(c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	s->n_clients--;
	loop_watch_remove(&c->watch);
	ttrpc_reader_deinit(&c->reader);
	buf_deinit(&c->out);
	fd_close(c->fd);
	free(c);
	watch_listener(s);
}

/* Nothing is read of who does not read. */
static void client_watch(struct client *c)
{
	bool full = buf_len(&c->out) >= UNREAD_PAUSE;
	bool writes = buf_len(&c->out) > 0 || c->broken;
	loop_watch_modify(&c->watch, (full ? 0 : EPOLLIN) | (writes ? EPOLLOUT : 0));
}

static void client_respond(struct client *c, uint32_t stream, enum ttrpc_code code, const char *why,
			   const uint8_t *payload, size_t len)
{
	if (ttrpc_response_append(&c->out, stream, code, why, payload, len) < 0)
		c->broken = true;
	client_watch(c);
}

static void take_request(struct client *c, const struct ttrpc_header *h, const uint8_t *data)
{
	struct ttrpc_request q;
	uint64_t token;
	int r = ttrpc_request_decode(data, h->len, &q);
	if (r < 0) {
		client_respond(c, h->stream, TTRPC_INVALID_ARGUMENT,
			       "the request is not understood", NULL, 0);
		return;
	}
	r = call_add(c, h->stream, &token);
	if (r < 0)
		client_respond(c, h->stream, TTRPC_RESOURCE_EXHAUSTED,
			       "too many requests wait for their answers", NULL, 0);
	else
		c->server->handler(c->server->ctx, token, &q);
	ttrpc_request_deinit(&q);
}

/* Frames of other types are for later versions of the protocol. */
static void take_frame(struct client *c, const struct ttrpc_header *h, const uint8_t *data)
{
	if (h->type != TTRPC_REQUEST)
		return;
	if (h->stream % 2 == 0)
		client_respond(c, h->stream, TTRPC_INVALID_ARGUMENT,
			       "streams of clients have odd numbers", NULL, 0);
	else if (!data)
		client_respond(c, h->stream, TTRPC_RESOURCE_EXHAUSTED,
			       "the request is longer than 4 MiB", NULL, 0);
	else
		take_request(c, h, data);
}

static void take_frames(struct client *c)
{
	struct ttrpc_header h;
	const uint8_t *data;
	int r;
	while (!c->broken && (r = ttrpc_reader_next(&c->reader, &h, &data)) != TTRPC_INCOMPLETE) {
		take_frame(c, &h, r == 0 ? data : NULL);
		if (r == 0)
			ttrpc_reader_drop(&c->reader, h.len);
	}
	if (buf_len(&c->reader.in) == 0)
		buf_deinit(&c->reader.in); /* a request of megabytes comes once */
}

/* Reads what is there of the frame that comes. False if the peer is gone. */
static bool client_receive(struct client *c)
{
	size_t n = 0, want = MIN(ttrpc_reader_missing(&c->reader), READ_MAX);
	int r = unix_recv_buf(c->fd, &c->reader.in, want, &n);
	if (r == 0)
		take_frames(c);
	return r == -EAGAIN || n > 0;
}

static bool client_send(struct client *c)
{
	int r = unix_send_buf(c->fd, &c->out);
	if (buf_len(&c->out) == 0)
		buf_deinit(&c->out); /* an answer of megabytes comes once */
	return r == 0;
}

static void on_client(void *ctx, uint32_t events)
{
	struct client *c = ctx;
	bool alive = !c->broken;
	if (alive && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		alive = client_receive(c);
	if (!alive || c->broken || !client_send(c))
		client_free(c);
	else
		client_watch(c);
}

/* True if who has connected may: root, or who we are. */
static bool is_welcome(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void client_open(struct ttrpc_server *s, int fd)
{
	cleanup_fd int owned = fd;
	cleanup_free struct client *c = calloc(1, sizeof(*c));
	if (!c || !is_welcome(fd))
		return; /* closed; its peer hears of that */
	*c = (struct client){ .server = s, .watch = LOOP_WATCH_INIT, .fd = fd };
	ttrpc_reader_init(&c->reader);
	buf_init(&c->out, TTRPC_UNREAD_MAX);
	if (loop_watch_add(s->loop, &c->watch, fd, EPOLLIN, on_client, c) < 0)
		return;
	owned = -EBADF;
	c->next = s->clients;
	s->clients = TAKE_PTR(c);
	s->n_clients++;
}

static void on_accept(void *ctx, uint32_t events)
{
	struct ttrpc_server *s = ctx;
	(void)events;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		client_open(s, fd);
	watch_listener(s);
}

/* ---- the server ---- */

int ttrpc_server_new(struct loop *loop, int fd, ttrpc_handler handler, void *ctx,
		     struct ttrpc_server **ret)
{
	cleanup_fd int owned = fd;
	cleanup_free struct ttrpc_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct ttrpc_server){
		.loop = loop,
		.fd = fd,
		.accept = LOOP_WATCH_INIT,
		.handler = handler,
		.ctx = ctx,
	};
	int r = loop_watch_add(loop, &s->accept, fd, EPOLLIN, on_accept, s);
	if (r < 0)
		return r;
	owned = -EBADF;
	*ret = TAKE_PTR(s);
	return 0;
}

bool ttrpc_server_waits(const struct ttrpc_server *s, uint64_t token)
{
	for (size_t i = 0; i < s->n_calls; i++)
		if (s->calls[i].token == token)
			return true;
	return false;
}

void ttrpc_server_answer(struct ttrpc_server *s, uint64_t token, const uint8_t *payload, size_t len)
{
	struct call call;
	if (call_take(s, token, &call))
		client_respond(call.client, call.stream, TTRPC_OK, NULL, payload, len);
}

void ttrpc_server_refuse(struct ttrpc_server *s, uint64_t token, enum ttrpc_code code,
			 const char *why)
{
	struct call call;
	if (call_take(s, token, &call))
		client_respond(call.client, call.stream, code, why, NULL, 0);
}

bool ttrpc_server_is_flushed(const struct ttrpc_server *s)
{
	for (const struct client *c = s->clients; c; c = c->next)
		if (buf_len(&c->out) > 0 && !c->broken)
			return false;
	return true;
}

void ttrpc_server_free(struct ttrpc_server *s)
{
	if (!s)
		return;
	while (s->clients)
		client_free(s->clients);
	loop_watch_remove(&s->accept);
	fd_close(s->fd);
	free(s->calls);
	free(s);
}
