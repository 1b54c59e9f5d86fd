/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/forwards.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/net/duplex.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "stage1/agent/first.h"

struct forward {
	struct forwards *all;
	bool is_used;
	uint16_t port;
	int client, agent;       /* owned, until they are the duplex's; or -EBADF */
	struct dial dial;        /* to the agent */
	struct loop_watch watch; /* for the agent's reply */
	struct loop_timer limit; /* of that, from the beginning */
	struct buf reply;
	struct duplex duplex;
};

struct forwards {
	struct loop *loop;
	int listener;
	const struct agent_route *route;
	char secret[AGENT_SECRET_LEN + 1];
	struct loop_watch watch; /* not while all are used */
	struct loop_timer pause; /* until descriptors are there again */
	struct forward v[FORWARDS_MAX];
};

static void on_client(void *ctx, uint32_t events);

static void wait_for_clients(struct forwards *f)
{
	if (!f->watch.loop &&
	    loop_watch_add(f->loop, &f->watch, f->listener, EPOLLIN, on_client, f) < 0)
		f->watch = LOOP_WATCH_INIT;
}

static void forward_init(struct forward *w, struct forwards *all)
{
	*w = (struct forward){ .all = all,
			       .client = -EBADF,
			       .agent = -EBADF,
			       .watch = LOOP_WATCH_INIT,
			       .duplex = DUPLEX_INIT };
	buf_init(&w->reply, FIRST_REPLY_MAX);
}

/* Nothing is asked of the agent any more. */
static void stop_asking(struct forward *w)
{
	dial_stop(&w->dial);
	loop_watch_remove(&w->watch);
	loop_timer_disarm(&w->limit);
	buf_deinit(&w->reply);
}

/* Resets what is still open. */
static void forward_end(struct forward *w)
{
	struct forwards *all = w->all;
	stop_asking(w);
	duplex_stop(&w->duplex);
	duplex_cut(w->client);
	fd_close(w->agent);
	forward_init(w, all);
}

static void forward_free(struct forward *w)
{
	forward_end(w);
	wait_for_clients(w->all);
}

static struct forward *find_free(struct forwards *f)
{
	for (size_t i = 0; i < FORWARDS_MAX; i++)
		if (!f->v[i].is_used)
			return &f->v[i];
	return NULL;
}

/* ---- asking the agent ---- */

static void on_end(void *ctx, int error)
{
	(void)error; /* the client knows by the way in which it was ended */
	forward_free(ctx);
}

static void on_reply(void *ctx, uint32_t events)
{
	struct forward *w = ctx;
	struct err why = ERR_INIT; /* of the many ways to tell it TCP has one, a reset */
	(void)events;
	int r = first_receive(w->agent, &w->reply, &why);
	if (r == -EAGAIN)
		return;
	stop_asking(w);
	if (r == 0)
		r = duplex_start(&w->duplex, w->all->loop, TAKE_FD(w->client), TAKE_FD(w->agent),
				 on_end, w);
	if (r < 0)
		forward_free(w);
}

static int ask(struct forward *w)
{
	struct agent_connect m = { .port = w->port };
	struct json_object *body = NULL;
	memcpy(m.secret, w->all->secret, sizeof(m.secret));
	int r = agent_connect_encode(&m, &body);
	if (r == 0)
		r = first_send(w->agent, AGENT_CONNECT, body);
	return r < 0 ? r : loop_watch_add(w->all->loop, &w->watch, w->agent, EPOLLIN, on_reply, w);
}

static void on_dialed(void *ctx, int fd)
{
	struct forward *w = ctx;
	w->agent = fd;
	if (fd < 0 || ask(w) < 0)
		forward_free(w);
}

static void on_limit(void *ctx)
{
	forward_free(ctx);
}

/* ---- clients ---- */

/* Which port @client has meant. 0: it cannot be told. */
static uint16_t port_of(int client)
{
	struct sockaddr_in meant = { 0 };
	socklen_t len = sizeof(meant);
	return getsockname(client, (struct sockaddr *)&meant, &len) == 0 ? ntohs(meant.sin_port)
									 : 0;
}

static int probe(int client)
{
	static const int on = 1, after = FORWARDS_PROBE_AFTER, each = FORWARDS_PROBE_EACH,
			 probes = FORWARDS_PROBES;
	return setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
			       setsockopt(client, IPPROTO_TCP, TCP_KEEPIDLE, &after,
					  sizeof(after)) < 0 ||
			       setsockopt(client, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each)) <
				       0 ||
			       setsockopt(client, IPPROTO_TCP, TCP_KEEPCNT, &probes,
					  sizeof(probes)) < 0
		       ? -errno
		       : 0;
}

/* Takes @client over. */
static void forward_begin(struct forward *w, int client)
{
	struct forwards *f = w->all;
	w->is_used = true;
	w->client = client;
	w->port = port_of(client);
	if (w->port == 0 || probe(client) < 0 ||
	    dial_start(&w->dial, f->loop, f->route, AGENT_PORT, on_dialed, w) < 0) {
		forward_free(w);
		return;
	}
	loop_timer_arm(f->loop, &w->limit, clock_monotonic_ns() + FIRST_REPLY_MS * NS_PER_MS,
		       on_limit, w);
}

static void on_pause(void *ctx)
{
	wait_for_clients(ctx);
}

static void on_client(void *ctx, uint32_t events)
{
	struct forwards *f = ctx;
	struct forward *w;
	(void)events;
	while ((w = find_free(f))) {
		int client = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0) {
			forward_begin(w, client);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		loop_timer_arm(f->loop, &f->pause,
			       clock_monotonic_ns() + FORWARDS_PAUSE_MS * NS_PER_MS, on_pause, f);
		break;
	}
	loop_watch_remove(&f->watch);
}

int forwards_new(struct loop *loop, int listener, const struct agent_route *route,
		 const char *secret, struct forwards **ret)
{
	cleanup_free struct forwards *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->loop = loop;
	f->listener = listener;
	f->route = route;
	f->watch = LOOP_WATCH_INIT;
	memcpy(f->secret, secret, AGENT_SECRET_LEN);
	for (size_t i = 0; i < FORWARDS_MAX; i++)
		forward_init(&f->v[i], f);
	int r = loop_watch_add(loop, &f->watch, listener, EPOLLIN, on_client, f);
	if (r == 0)
		*ret = TAKE_PTR(f);
	return r;
}

void forwards_free(struct forwards *f)
{
	if (!f)
		return;
	loop_timer_disarm(&f->pause);
	loop_watch_remove(&f->watch);
	for (size_t i = 0; i < FORWARDS_MAX; i++)
		forward_end(&f->v[i]);
	free(f);
}
