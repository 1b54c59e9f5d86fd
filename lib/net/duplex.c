/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/duplex.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"

struct duplex_way {
	size_t head, len; /* bytes [head, head + len) of @mem wait */
	bool ended;       /* the source has */
	bool told;        /* and the target knows */
	bool more;        /* there may be more to move */
	char mem[DUPLEX_BUFFER];
};

/* Nothing that is sent to it arrives any more. */
static bool is_deaf(int fd)
{
	return send(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
	       errno != EINTR;
}

int duplex_cut(int fd)
{
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd_close(fd);
}

static void close_all(struct duplex *d, bool in_order)
{
	for (int i = 0; i < 2; i++) {
		loop_watch_remove(&d->watches[i]);
		d->fds[i] = in_order ? fd_close(d->fds[i]) : duplex_cut(d->fds[i]);
	}
	loop_timer_disarm(&d->again);
	free(d->ways);
	d->ways = NULL;
	d->loop = NULL;
}

static void finish(struct duplex *d, int error)
{
	duplex_end_fn ended = d->ended;
	void *ctx = d->ctx;
	close_all(d, error == 0);
	ended(ctx, error);
}

/* ---- one way ---- */

/*
 * Whether the socket @fd, from which nothing more can be read now, is gone, not only at the end of
 * what it sends. That cannot be told once it knows that nothing more comes from here: @back says
 * so.
 */
static bool is_gone(int fd, const struct duplex_way *back)
{
	return !back->told && is_deaf(fd);
}

/* 0; -EAGAIN if there is nothing yet; -errno. */
static int fill(struct duplex_way *w, const struct duplex_way *back, int from)
{
	ssize_t n = recv(from, w->mem, sizeof(w->mem), MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	w->head = 0;
	w->len = (size_t)n;
	w->ended = n == 0;
	return w->ended && is_gone(from, back) ? -ECONNRESET : 0;
}

static int drain(struct duplex_way *w, int to)
{
	ssize_t n = send(to, w->mem + w->head, w->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	w->head += (size_t)n;
	w->len -= (size_t)n;
	return 0;
}

/* A socket that is about to be connected would give that up: it is told when it is. */
static int tell_end(struct duplex_way *w, int to)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	if (getpeername(to, (struct sockaddr *)&peer, &len) < 0)
		return errno == ENOTCONN ? -EAGAIN : -errno;
	if (shutdown(to, SHUT_WR) < 0)
		return -errno;
	w->told = true;
	return 0;
}

/* Moves what can be moved now. 0 or -errno. */
static int move(struct duplex_way *w, const struct duplex_way *back, int from, int to)
{
	int r = 0;
	for (int i = 0; r == 0 && i < 2 * DUPLEX_TURNS_MAX && !w->told; i++) {
		if (w->len > 0)
			r = drain(w, to);
		else
			r = w->ended ? tell_end(w, to) : fill(w, back, from);
	}
	w->more = r == 0 && !w->told;
	if (r < 0 && r != -EAGAIN)
		return r;
	return (w->len > 0 || w->ended) && is_gone(from, back) ? -ECONNRESET : 0;
}

/* ---- both ---- */

static void on_ready(void *ctx);

static int run(struct duplex *d)
{
	int r = move(&d->ways[0], &d->ways[1], d->fds[0], d->fds[1]);
	return r == 0 ? move(&d->ways[1], &d->ways[0], d->fds[1], d->fds[0]) : r;
}

static void run_and_wait(struct duplex *d)
{
	int r = run(d);
	if (r < 0 || (d->ways[0].told && d->ways[1].told))
		finish(d, r);
	else if (d->ways[0].more || d->ways[1].more)
		loop_timer_arm(d->loop, &d->again, clock_monotonic_ns(), on_ready, d);
}

static void on_ready(void *ctx)
{
	run_and_wait(ctx);
}

/* An error, too, is behind what can still be read. */
static void on_event(void *ctx, uint32_t events)
{
	(void)events;
	run_and_wait(ctx);
}

int duplex_start(struct duplex *d, struct loop *loop, int a, int b, duplex_end_fn ended, void *ctx)
{
	static const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	*d = (struct duplex){ .fds = { a, b },
			      .watches = { LOOP_WATCH_INIT, LOOP_WATCH_INIT },
			      .ways = calloc(2, sizeof(*d->ways)),
			      .ended = ended,
			      .ctx = ctx };
	int r = d->ways ? 0 : -ENOMEM;
	for (int i = 0; r == 0 && i < 2; i++)
		r = loop_watch_add(loop, &d->watches[i], d->fds[i], events, on_event, d);
	if (r < 0) {
		close_all(d, false);
		return r;
	}
	d->loop = loop;
	return 0;
}

void duplex_stop(struct duplex *d)
{
	if (!d->loop)
		return;
	close_all(d, false);
}
