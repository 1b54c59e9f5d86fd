/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe is pumped with splice(2): bytes go from pipe to socket, or back, without a buffer of the
 * agent, so its memory does not depend on how slow the host reads.
 *
 * A connection that the host has closed reads as end of file; a vsock reports no hang-up for it. So
 * a host that shuts down its side of an output has left. Of a terminal, and of input whose end is
 * meant for the app, it has not, until sending fails, too: that is tried, with nothing to send,
 * whenever the state of such a connection changes.
 *
 * A pump waits for one side at a time. While it waits for its source, the sink is watched for its
 * end only; while it waits for its sink, the source is not watched at all, since a hang-up of a
 * source that still holds bytes would be reported for ever.
 *
 * A terminal has both directions on one descriptor and small buffers, as its kernel queues are
 * small anyway. Each descriptor is watched for what the fill levels allow, and not at all if that
 * is nothing.
 */
#include "guest-agent/pod/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "lib/os/fd.h"

/* Most bytes that one wake-up moves, so that other connections get their turn. */
#define PUMP_TURN_MAX ((size_t)1024 * 1024)

/* Bytes of one splice(2): reading from a socket, the kernel allocates pages for all of them. */
#define PUMP_STEP ((size_t)128 * 1024)

struct tty_queue {
	size_t head, len; /* bytes [head, head + len) wait */
	char mem[STREAM_TTY_BUF];
};

struct stream_tty {
	struct tty_queue to_app, to_host;
	bool host_eof;  /* the host has shut its side down */
	bool host_gone; /* the connection is closed; what was received still goes to the app */
	bool app_eof;   /* no process has the terminal open any more */
};

void stream_init(struct stream *s)
{
	*s = (struct stream){ .app_fd = -EBADF,
			      .sock = -EBADF,
			      .app_watch = LOOP_WATCH_INIT,
			      .sock_watch = LOOP_WATCH_INIT };
}

void stream_open(struct stream *s, struct loop *loop, enum agent_stream kind, int app_fd)
{
	stream_init(s);
	s->loop = loop;
	s->kind = kind;
	s->app_fd = app_fd;
	s->to_app = kind == AGENT_STREAM_STDIN;
	s->state = STREAM_WAITING;
}

static void stop_flow(struct stream *s)
{
	loop_watch_remove(&s->app_watch);
	loop_watch_remove(&s->sock_watch);
	free(TAKE_PTR(s->tty));
}

static void close_all(struct stream *s)
{
	stop_flow(s);
	fd_replace(&s->app_fd, -EBADF);
	fd_replace(&s->sock, -EBADF);
}

static void stream_finish(struct stream *s)
{
	close_all(s);
	s->state = STREAM_DONE;
}

static void on_closed(void *ctx, uint32_t events)
{
	(void)events;
	stream_finish(ctx);
}

/* The app has ended its output, and all of it was sent: the host closes when it has read that. */
static void end_output(struct stream *s)
{
	stop_flow(s);
	fd_replace(&s->app_fd, -EBADF);
	s->state = STREAM_SENT;
	if (shutdown(s->sock, SHUT_WR) < 0 ||
	    loop_watch_add(s->loop, &s->sock_watch, s->sock, EPOLLRDHUP, on_closed, s) < 0)
		stream_finish(s);
}

bool stream_is_sending(const struct stream *s)
{
	return s->kind != AGENT_STREAM_STDIN &&
	       (s->state == STREAM_ATTACHED || s->state == STREAM_SENT);
}

/* True if nothing sent to the host arrives any more. */
static bool is_deaf(int sock)
{
	return send(sock, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
	       errno != EINTR;
}

/* The host has left, which ends the stream, or not. */
static void host_left(struct stream *s)
{
	if (!s->keep || (s->to_app && s->end_in && !is_deaf(s->sock))) {
		stream_finish(s);
		return;
	}
	stop_flow(s);
	fd_replace(&s->sock, -EBADF);
	s->state = STREAM_WAITING;
}

void stream_deinit(struct stream *s)
{
	close_all(s);
	stream_init(s);
}

/* Watches @fd for @events; for nothing, not even hang-ups, if that is 0. */
static int want(struct stream *s, struct loop_watch *w, int fd, uint32_t events, loop_watch_fn fn)
{
	if (events == 0) {
		loop_watch_remove(w);
		return 0;
	}
	return w->loop ? loop_watch_modify(w, events)
		       : loop_watch_add(s->loop, w, fd, events, fn, s);
}

static void on_pump_source(void *ctx, uint32_t events);
static void on_pump_sink(void *ctx, uint32_t events);

static int pump_source(const struct stream *s)
{
	return s->to_app ? s->sock : s->app_fd;
}

static int pump_sink(const struct stream *s)
{
	return s->to_app ? s->app_fd : s->sock;
}

static int wait_for_source(struct stream *s)
{
	struct loop_watch *source = s->to_app ? &s->sock_watch : &s->app_watch;
	struct loop_watch *sink = s->to_app ? &s->app_watch : &s->sock_watch;
	uint32_t gone = s->to_app ? 0 : EPOLLRDHUP;
	int r = want(s, sink, pump_sink(s), EPOLLERR | EPOLLHUP | gone, on_pump_sink);
	return r < 0 ? r : want(s, source, pump_source(s), EPOLLIN, on_pump_source);
}

static int wait_for_sink(struct stream *s)
{
	struct loop_watch *source = s->to_app ? &s->sock_watch : &s->app_watch;
	struct loop_watch *sink = s->to_app ? &s->app_watch : &s->sock_watch;
	loop_watch_remove(source);
	return want(s, sink, pump_sink(s), EPOLLOUT, on_pump_sink);
}

static bool is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	return poll(&p, 1, 0) > 0;
}

/*
 * Moves up to PUMP_TURN_MAX bytes. 0, -EAGAIN if a side holds it up, -ENODATA at the end of the
 * source, -EPIPE or another -errno if the sink does not take any more.
 */
static int move_bytes(const struct stream *s)
{
	for (size_t moved = 0; moved < PUMP_TURN_MAX;) {
		ssize_t n = splice(pump_source(s), NULL, pump_sink(s), NULL, PUMP_STEP,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			moved += (size_t)n;
	}
	return 0;
}

static void pump(struct stream *s)
{
	int r = move_bytes(s);
	if (r == -EAGAIN && !is_writable(pump_sink(s)))
		r = wait_for_sink(s);
	else if (r == 0 || r == -EAGAIN)
		r = wait_for_source(s);
	if (r == -ENODATA && !s->to_app)
		end_output(s);
	else if (r < 0 && (r == -ENODATA) == s->to_app)
		host_left(s);
	else if (r < 0)
		stream_finish(s);
}

static void on_pump_source(void *ctx, uint32_t events)
{
	(void)events;
	pump(ctx);
}

static void on_pump_sink(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	if (!(events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)))
		pump(s);
	else if (s->to_app)
		stream_finish(s);
	else
		host_left(s);
}

/* Reads into an empty queue. 0, -EAGAIN, -EPIPE at end of file, or -errno. */
static int tty_fill(struct tty_queue *q, int fd)
{
	ssize_t n = read(fd, q->mem, sizeof(q->mem));
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	q->head = 0;
	q->len = (size_t)n;
	return n == 0 ? -EPIPE : 0;
}

static int tty_drain(struct tty_queue *q, int fd)
{
	ssize_t n = write(fd, q->mem + q->head, q->len);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	q->head += (size_t)n;
	q->len -= (size_t)n;
	return 0;
}

/* The signal that the line discipline makes of one of these bytes, or 0. */
static int key_signal(int master, const char *at, size_t len)
{
	struct termios t;
	if (tcgetattr(master, &t) < 0 || !(t.c_lflag & ISIG))
		return 0;
	for (size_t i = 0; i < len; i++) {
		cc_t key = (cc_t)at[i];
		if (key != _POSIX_VDISABLE && (key == t.c_cc[VINTR] || key == t.c_cc[VQUIT]))
			return key == t.c_cc[VINTR] ? SIGINT : SIGQUIT;
	}
	return 0;
}

/* What was typed goes to the app, and what it means is told. */
static int tty_type(struct stream *s)
{
	struct tty_queue *q = &s->tty->to_app;
	const char *at = q->mem + q->head;
	size_t len = q->len;
	int r = tty_drain(q, s->app_fd);
	int sig = r == 0 && s->on_key ? key_signal(s->app_fd, at, len - q->len) : 0;
	pid_t foreground = sig ? tcgetpgrp(s->app_fd) : -1;
	if (foreground > 0)
		s->on_key(s->key_ctx, sig, foreground);
	return r;
}

static void on_tty_app(void *ctx, uint32_t events);
static void on_tty_sock(void *ctx, uint32_t events);

/* True when no byte can reach anybody any more. */
static bool tty_is_over(const struct stream_tty *t)
{
	if (t->host_gone && t->host_eof && t->to_app.len == 0)
		return true;
	return t->app_eof && (t->host_gone || t->to_host.len == 0);
}

/* Arranges for the next wake-up, or ends the stream. */
static void tty_wait(struct stream *s)
{
	struct stream_tty *t = s->tty;
	uint32_t app = 0, sock = 0;
	if (tty_is_over(t)) {
		if (t->app_eof && !t->host_gone)
			end_output(s);
		else if (t->app_eof)
			stream_finish(s);
		else
			host_left(s);
		return;
	}
	if (!t->app_eof && t->to_host.len == 0)
		app |= EPOLLIN;
	if (!t->app_eof && t->to_app.len > 0)
		app |= EPOLLOUT;
	if (!t->host_eof && t->to_app.len == 0)
		sock |= EPOLLIN;
	if (t->to_host.len > 0)
		sock |= EPOLLOUT;
	if (t->host_gone) /* its hang-up would be reported for ever */
		sock = t->host_eof ? 0 : sock & EPOLLIN;
	else if (sock == 0)
		sock = t->host_eof ? EPOLLRDHUP | EPOLLET : EPOLLERR;
	if (want(s, &s->app_watch, s->app_fd, app, on_tty_app) < 0 ||
	    want(s, &s->sock_watch, s->sock, sock, on_tty_sock) < 0)
		stream_finish(s);
}

static int ignore_again(int r)
{
	return r == -EAGAIN ? 0 : r;
}

/*
 * One round over both directions. A terminal whose last process is gone reads as EIO; a host that
 * has gone altogether shows as a failed write or a hang-up.
 */
static void tty_round(struct stream *s)
{
	struct stream_tty *t = s->tty;
	if (t->to_host.len == 0 && !t->app_eof &&
	    ignore_again(tty_fill(&t->to_host, s->app_fd)) < 0)
		t->app_eof = true;
	if (t->to_app.len == 0 && !t->host_eof && ignore_again(tty_fill(&t->to_app, s->sock)) < 0)
		t->host_eof = true;
	if (t->to_app.len > 0 && (t->app_eof || ignore_again(tty_type(s)) < 0))
		t->to_app.len = 0;
	if (t->to_host.len > 0 && ignore_again(tty_drain(&t->to_host, s->sock)) < 0)
		t->host_gone = true;
	if (t->host_eof && is_deaf(s->sock))
		t->host_gone = true;
	if (t->host_gone)
		t->to_host.len = 0;
	tty_wait(s);
}

static void on_tty_app(void *ctx, uint32_t events)
{
	(void)events;
	tty_round(ctx);
}

static void on_tty_sock(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	if (events & (EPOLLERR | EPOLLHUP))
		s->tty->host_gone = true;
	tty_round(s);
}

static int attach_tty(struct stream *s)
{
	s->tty = calloc(1, sizeof(*s->tty));
	if (!s->tty)
		return -ENOMEM;
	int r = want(s, &s->sock_watch, s->sock, EPOLLIN, on_tty_sock);
	return r < 0 ? r : want(s, &s->app_watch, s->app_fd, EPOLLIN, on_tty_app);
}

int stream_attach(struct stream *s, int sock)
{
	s->sock = sock;
	int r = s->kind == AGENT_STREAM_TTY ? attach_tty(s) : wait_for_source(s);
	if (r < 0)
		stream_finish(s);
	else
		s->state = STREAM_ATTACHED;
	return r;
}
