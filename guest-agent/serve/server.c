/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection is NEW until its session has seen the secret, then either a control connection, or
 * its descriptor goes to a stream and the connection is forgotten here.
 *
 * New connections are few and short-lived: SERVER_NEW_MAX of them, SERVER_NEW_MS each. When one
 * more comes, the oldest goes: an attacker without the secret can delay others by that, not lock
 * them out.
 *
 * The pod may have something to say to any connection while another one is being served. So what it
 * says is appended to the output and sent if possible, but a connection is closed only from its own
 * event handler (`doomed` makes sure that there is an event).
 *
 * After pod.shutdown the loop ends as soon as the host has closed its control connections.
 */
#include "guest-agent/serve/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "guest-agent/log.h"
#include "guest-agent/serve/session.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

struct conn {
	struct server *server;
	struct conn *next;
	struct session session;
	int fd;
	struct loop_watch watch;
	struct loop_timer deadline; /* armed while NEW */
	bool doomed;                /* sending failed */
};

struct server {
	struct loop *loop;
	struct server_config config;
	struct session_env env;
	struct loop_watch accept;
	struct conn *conns; /* newest first */
	uint64_t last_serial;
	struct conn *busy; /* the connection being served */
	bool off;
};

static void on_conn(void *ctx, uint32_t events);

static void conn_free(struct conn *c)
{
	struct server *s = c->server;
	struct conn **p = &s->conns;
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	if (c->session.state != SESSION_STREAM)
		pod_conn_closed(s->env.pod, c->session.serial);
	loop_watch_remove(&c->watch);
	loop_timer_disarm(&c->deadline);
	session_deinit(&c->session);
	fd_close(c->fd);
	free(c);
	if (s->off && s->env.n_control == 0)
		loop_quit(s->loop);
}

/* Sends what fits into the socket. */
static void conn_send(struct conn *c)
{
	struct buf *out = &c->session.out;
	while (buf_len(out) > 0 && !c->doomed) {
		ssize_t n = send(c->fd, buf_data(out), buf_len(out), MSG_NOSIGNAL);
		if (n > 0)
			buf_consume(out, (size_t)n);
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			c->doomed = true;
	}
	if (buf_len(out) == 0)
		buf_deinit(out);
}

/* Waits for what the session can use. */
static void conn_wait(struct conn *c)
{
	uint32_t events = 0;
	if (c->doomed || buf_len(&c->session.out) > 0)
		events |= EPOLLOUT; /* a broken socket is writable, too */
	if (session_wants(&c->session) > 0)
		events |= EPOLLIN;
	if (loop_watch_modify(&c->watch, events) < 0)
		c->doomed = true;
}

/* Receives once. False if the peer is gone or has nothing more to say. */
static bool conn_receive(struct conn *c)
{
	char *where;
	size_t want = session_wants(&c->session);
	if (want == 0)
		return true;
	if (buf_reserve(&c->session.in, want, &where) < 0)
		return false;
	ssize_t n = recv(c->fd, where, want, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	buf_commit(&c->session.in, (size_t)n);
	return n > 0;
}

/*
 * Sends the reply and gives the descriptor to the stream. A reply is too short to be sent in part.
 */
static void hand_over(struct conn *c)
{
	struct fault f = { 0 };
	conn_send(c);
	loop_watch_remove(&c->watch);
	if (!c->doomed && buf_len(&c->session.out) == 0 &&
	    session_hand_over(&c->session, TAKE_FD(c->fd), &f) != 0)
		log_error("%s", f.text);
	conn_free(c);
}

/* Receives and processes; what the header of a first frame announces is there in the next round. */
static bool conn_serve(struct conn *c, uint32_t events)
{
	bool alive = true;
	for (int round = 0; round < 2 && alive; round++) {
		if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			alive = conn_receive(c);
		session_process(&c->session);
		if (c->session.state != SESSION_NEW)
			break;
	}
	return alive;
}

static void on_conn(void *ctx, uint32_t events)
{
	struct conn *c = ctx;
	struct server *s = c->server;
	if (events & EPOLLOUT)
		conn_send(c);
	s->busy = c;
	bool alive = conn_serve(c, events);
	s->busy = NULL;
	if (c->session.state == SESSION_STREAM) {
		hand_over(c);
		return;
	}
	conn_send(c);
	if (!alive || c->doomed || c->session.state == SESSION_CLOSED) {
		conn_free(c);
		return;
	}
	if (c->session.state == SESSION_CONTROL)
		loop_timer_disarm(&c->deadline);
	conn_wait(c);
}

static void on_deadline(void *ctx)
{
	conn_free(ctx);
}

/* The oldest connection that has not shown the secret, or NULL, and how many there are. */
static struct conn *find_oldest(const struct server *s, int *ret_n)
{
	struct conn *oldest = NULL;
	*ret_n = 0;
	for (struct conn *c = s->conns; c; c = c->next) {
		if (c->session.state != SESSION_NEW)
			continue;
		oldest = c;
		++*ret_n;
	}
	return oldest;
}

static void drop_oldest(struct server *s)
{
	int n;
	struct conn *oldest = find_oldest(s, &n);
	if (oldest)
		conn_free(oldest);
}

static void make_room(struct server *s)
{
	int n;
	struct conn *oldest = find_oldest(s, &n);
	if (n >= SERVER_NEW_MAX)
		conn_free(oldest);
}

/* Takes @fd over. */
static int conn_new(struct server *s, int fd)
{
	cleanup_fd int owned = fd;
	cleanup_free struct conn *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	session_init(&c->session, &s->env, ++s->last_serial);
	int r = loop_watch_add(s->loop, &c->watch, fd, EPOLLIN, on_conn, c);
	if (r < 0)
		return r;
	c->server = s;
	c->fd = TAKE_FD(owned);
	loop_timer_arm(s->loop, &c->deadline, clock_monotonic_ns() + SERVER_NEW_MS * NS_PER_MS,
		       on_deadline, c);
	c->next = s->conns;
	s->conns = TAKE_PTR(c);
	return 0;
}

static bool is_welcome(const struct server *s, const struct sockaddr_vm *peer)
{
	return !s->config.is_vsock || peer->svm_cid == VMADDR_CID_HOST;
}

static void on_accept(void *ctx, uint32_t events)
{
	struct server *s = ctx;
	(void)events;
	for (int i = 0; i < SERVER_NEW_MAX; i++) {
		struct sockaddr_vm peer = { 0 };
		socklen_t len = sizeof(peer);
		int fd = accept4(s->config.listen_fd,
				 s->config.is_vsock ? (struct sockaddr *)&peer : NULL,
				 s->config.is_vsock ? &len : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				drop_oldest(s); /* else this event would come for ever */
			return;
		}
		if (!is_welcome(s, &peer)) {
			fd_close(fd);
			continue;
		}
		make_room(s);
		if (conn_new(s, fd) < 0)
			log_error("out of memory: connection refused");
	}
}

/* Sends what was appended, unless the handler of this connection will do so in a moment. */
static void conn_kick(struct conn *c)
{
	if (c == c->server->busy)
		return;
	conn_send(c);
	c->doomed |= c->session.state == SESSION_CLOSED;
	conn_wait(c);
}

static struct conn *find_conn(const struct server *s, uint64_t serial)
{
	struct conn *c = s->conns;
	while (c && c->session.serial != serial)
		c = c->next;
	return c;
}

static void on_done(void *ctx, struct pod_caller to, const struct fault *f)
{
	struct conn *c = find_conn(ctx, to.conn);
	if (!c)
		return;
	session_answer(&c->session, to.id, f);
	conn_kick(c);
}

static void on_stats(void *ctx, struct pod_caller to, const struct agent_app_stats *m)
{
	struct conn *c = find_conn(ctx, to.conn);
	if (!c)
		return;
	session_answer_stats(&c->session, to.id, m);
	conn_kick(c);
}

static void on_exec_started(void *ctx, uint64_t serial, const struct agent_exec_ref *m)
{
	struct conn *c = find_conn(ctx, serial);
	if (!c)
		return;
	session_notify_exec_started(&c->session, m);
	conn_kick(c);
}

static void on_exec_exited(void *ctx, uint64_t serial, const struct agent_exec_exited *m)
{
	struct conn *c = find_conn(ctx, serial);
	if (!c)
		return;
	session_notify_exec_exited(&c->session, m);
	conn_kick(c);
}

static void on_exited(void *ctx, const struct agent_app_exited *m)
{
	struct server *s = ctx;
	for (struct conn *c = s->conns; c; c = c->next) {
		if (c->session.state != SESSION_CONTROL)
			continue;
		session_notify_exited(&c->session, m);
		conn_kick(c);
	}
}

static void on_off(void *ctx)
{
	struct server *s = ctx;
	s->off = true;
	if (s->env.n_control == 0)
		loop_quit(s->loop);
}

struct server *server_new(struct loop *loop, const struct server_config *config)
{
	cleanup_free struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->loop = loop;
	s->config = *config;
	s->env.init_ns = config->init_ns;
	s->env.is_machine = config->pod.is_init;
	if (str_copy(s->env.secret, sizeof(s->env.secret), config->secret) < 0)
		return NULL;
	const struct pod_events events = { on_done,        on_stats, on_exited, on_exec_started,
					   on_exec_exited, on_off,   s };
	s->env.pod = pod_new(loop, &config->pod, &events);
	if (!s->env.pod)
		return NULL;
	if (loop_watch_add(loop, &s->accept, config->listen_fd, EPOLLIN, on_accept, s) < 0) {
		pod_free(s->env.pod);
		return NULL;
	}
	return TAKE_PTR(s);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	for (struct conn *c = s->conns, *next; c; c = next) {
		next = c->next;
		conn_free(c);
	}
	loop_watch_remove(&s->accept);
	pod_free(s->env.pod);
	free(s);
}

struct pod *server_pod(struct server *s)
{
	return s->env.pod;
}
