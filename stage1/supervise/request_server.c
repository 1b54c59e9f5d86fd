/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection reads its request, waits for the answer, writes it, and ends. It is freed from its
 * own event handler or timer only; an answer given from within that handler is sent by it.
 */
#include "stage1/supervise/request_server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "stage1/pod/podfiles.h"

struct client {
	struct request_server *server;
	int fd; /* -EBADF: free */
	struct loop_watch watch;
	struct loop_timer limit;
	struct buf in, out;
	uint64_t token; /* 0 before the request was read */
	bool answered;
};

struct request_server {
	struct loop *loop;
	int fd;
	struct loop_watch accept;
	const struct request_server_ops *ops;
	void *ctx;
	uint64_t last_token;
	struct client clients[APP_REQUEST_CLIENTS_MAX];
	size_t n_clients;
};

/* While all places are taken nobody is accepted. */
static void watch_listener(struct request_server *s)
{
	loop_watch_modify(&s->accept, s->n_clients < APP_REQUEST_CLIENTS_MAX ? EPOLLIN : 0);
}

static void client_close(struct client *c)
{
	loop_watch_remove(&c->watch);
	loop_timer_disarm(&c->limit);
	buf_deinit(&c->in);
	buf_deinit(&c->out);
	c->fd = fd_close(c->fd);
	c->server->n_clients--;
	watch_listener(c->server);
}

/* Its peer has gone, or said more than it may. */
static void client_abandon(struct client *c)
{
	struct request_server *s = c->server;
	uint64_t token = c->answered ? 0 : c->token;
	client_close(c);
	if (token != 0)
		s->ops->gone(s->ctx, token);
}

static void on_limit(void *ctx)
{
	client_close(ctx);
}

/* False if the connection is over. */
static bool client_send(struct client *c)
{
	return unix_send_buf(c->fd, &c->out) == 0 && (!c->answered || buf_len(&c->out) > 0);
}

/* Reads what is there. False if the peer is gone. */
static bool client_receive(struct client *c)
{
	size_t n = 0, room = buf_room(&c->in);
	int r = room > 0 ? unix_recv_buf(c->fd, &c->in, room, &n) : -ENOBUFS;
	return r == -EAGAIN || n > 0;
}

static void client_process(struct client *c)
{
	struct app_request q;
	int r = app_request_decode(&c->in, &q);
	if (r == FRAME_INCOMPLETE)
		return;
	loop_timer_disarm(&c->limit);
	c->token = ++c->server->last_token;
	if (r == 0) {
		c->server->ops->request(c->server->ctx, &q, c->token);
		return;
	}
	struct err e = ERR_INIT;
	err_set(&e, -EBADMSG, "the request is not understood (was husk upgraded meanwhile?)");
	request_server_reply(c->server, c->token, &e);
}

static void on_client(void *ctx, uint32_t events)
{
	struct client *c = ctx;
	bool alive = true;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		alive = c->token == 0 && client_receive(c); /* more than one request: it is over */
	if (alive && c->token == 0)
		client_process(c);
	if (!alive || !client_send(c)) {
		client_abandon(c);
		return;
	}
	loop_watch_modify(&c->watch, EPOLLIN | (buf_len(&c->out) > 0 ? EPOLLOUT : 0));
}

static int client_open(struct request_server *s, int fd)
{
	cleanup_fd int owned = fd;
	struct client *c = s->clients;
	while (c->fd >= 0)
		c++;
	*c = (struct client){ .server = s, .fd = -EBADF, .watch = LOOP_WATCH_INIT };
	buf_init(&c->in, APP_REQUEST_FRAME_MAX);
	buf_init(&c->out, APP_REQUEST_FRAME_MAX);
	int r = loop_watch_add(s->loop, &c->watch, fd, EPOLLIN, on_client, c);
	if (r < 0)
		return r;
	c->fd = TAKE_FD(owned);
	s->n_clients++;
	loop_timer_arm(s->loop, &c->limit,
		       clock_monotonic_ns() + APP_REQUEST_REQUEST_MS * NS_PER_MS, on_limit, c);
	return 0;
}

static void on_accept(void *ctx, uint32_t events)
{
	struct request_server *s = ctx;
	(void)events;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		client_open(s, fd); /* short of memory, it is closed, and its peer hears of it */
	watch_listener(s);
}

int request_server_new(struct loop *loop, const struct request_server_ops *ops, void *ctx,
		       struct request_server **ret)
{
	cleanup_free struct request_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->ops = ops;
	s->ctx = ctx;
	for (size_t i = 0; i < APP_REQUEST_CLIENTS_MAX; i++)
		s->clients[i].fd = -EBADF;
	s->fd = unix_listen(POD_FILE_CONTROL, 0600);
	if (s->fd < 0)
		return s->fd;
	int r = loop_watch_add(loop, &s->accept, s->fd, EPOLLIN, on_accept, s);
	if (r < 0) {
		fd_close(s->fd);
		return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

void request_server_reply(struct request_server *s, uint64_t token, const struct err *why)
{
	for (size_t i = 0; i < APP_REQUEST_CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];
		if (c->fd < 0 || c->token != token || c->answered)
			continue;
		c->answered = true;
		app_request_encode_reply(why, &c->out); /* failing, it ends without an answer */
		loop_watch_modify(&c->watch, EPOLLIN | EPOLLOUT);
		return;
	}
}

void request_server_free(struct request_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < APP_REQUEST_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0)
			client_close(&s->clients[i]);
	loop_watch_remove(&s->accept);
	fd_close(s->fd);
	unlink(POD_FILE_CONTROL);
	free(s);
}
