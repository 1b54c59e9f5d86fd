/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "stage1/agent/first.h"

#define LOG_CHUNK      16384 /* bytes read at a time */
#define LOG_CHUNKS_MAX 16    /* in one turn of the loop */
#define LOG_LATER_MS   INT64_C(500)

static void stream_end(struct stream *s, const struct err *why)
{
	if (s->state == STREAM_ENDED)
		return;
	s->state = STREAM_ENDED;
	loop_watch_remove(&s->watch);
	loop_timer_disarm(&s->limit);
	loop_timer_disarm(&s->later);
	dial_stop(&s->dial);
	relay_stop(&s->in);
	relay_stop(&s->out);
	s->fd = fd_close(s->fd); /* the agent waits for that before it ends the pod */
	s->ended(s->ctx, s, why);
}

static void end_failed(struct stream *s, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "%s of app \"%s\": %s", agent_stream_name(s->attach.stream),
		s->attach.app, what);
	stream_end(s, &e);
}

static enum crilog_stream log_stream(const struct stream *s)
{
	return s->attach.stream == AGENT_STREAM_STDERR ? CRILOG_STDERR : CRILOG_STDOUT;
}

static void on_later(void *ctx);

/* An app that falls silent has what the valve holds in its log all the same. */
static void catch_up_later(struct stream *s, int64_t now_ns)
{
	if (log_credit_is_behind(&s->valve) && !s->later.loop)
		loop_timer_arm(s->loop, &s->later, now_ns + LOG_LATER_MS * NS_PER_MS, on_later, s);
}

static void on_later(void *ctx)
{
	struct stream *s = ctx;
	int64_t now = clock_monotonic_ns();
	log_credit_catch_up(&s->valve, now);
	catch_up_later(s, now);
}

static void on_out_bytes(void *ctx, const char *bytes, size_t len)
{
	struct stream *s = ctx;
	int64_t now = clock_monotonic_ns();
	log_credit_feed(&s->valve, now, bytes, len);
	catch_up_later(s, now);
}

static void on_out_end(void *ctx, enum relay_end how)
{
	struct stream *s = ctx;
	if (s->valve.log)
		log_credit_end(&s->valve);
	/*
	 * Nobody reads our output any more: the app has to notice, as it would in a shell. Both
	 * directions: who waits to write to a unix socket sees nothing else.
	 */
	if (how == RELAY_TARGET)
		shutdown(s->fd, SHUT_RDWR);
	stream_end(s, NULL);
}

/* The app notices nothing: it would be held up, or ended, by the disk of whoever reads it. */
static void on_out_loss(void *ctx, int error)
{
	struct stream *s = ctx;
	if (!s->lost)
		dprintf(STDERR_FILENO,
			"stage1: %s of app \"%s\" cannot be written, and is lost: %s\n",
			agent_stream_name(s->attach.stream), s->attach.app, strerror(error));
	s->lost = true;
}

static void on_in_closed(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	(void)events;
	loop_watch_remove(&s->watch);
	stream_end(s, NULL);
}

/*
 * Input that has ended is not over before the agent, which closes the connection then, has taken
 * it: what is on its way when we close could be lost.
 */
static void on_in_end(void *ctx, enum relay_end how)
{
	struct stream *s = ctx;
	if (how == RELAY_LEFT) {
		s->left = true;
		stream_end(s, NULL);
		return;
	}
	bool ended = how != RELAY_TARGET && shutdown(s->fd, SHUT_WR) == 0;
	if (s->attach.stream != AGENT_STREAM_STDIN)
		return;
	if (!ended ||
	    loop_watch_add(s->loop, &s->watch, s->fd, EPOLLIN | EPOLLRDHUP, on_in_closed, s) < 0)
		stream_end(s, NULL);
}

/* Reads for a while, so that the other streams get their turn, and never waits. */
static void on_log_readable(void *ctx, uint32_t events)
{
	static char chunk[LOG_CHUNK];
	struct stream *s = ctx;
	(void)events;
	for (int i = 0; i < LOG_CHUNKS_MAX; i++) {
		ssize_t n = recv(s->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			loop_watch_remove(&s->watch);
			applog_end(s->log, log_stream(s));
			stream_end(s, NULL);
			return;
		}
		applog_feed(s->log, log_stream(s), chunk, (size_t)n);
		s->logged++;
	}
}

/* Starts the pumps that this kind of stream has. */
static int start_flow(struct stream *s)
{
	s->state = STREAM_FLOWING;
	s->flowed = true;
	bool tty = s->attach.stream == AGENT_STREAM_TTY;
	int r = 0;
	if (tty || s->attach.stream == AGENT_STREAM_STDIN)
		r = relay_start(&s->in, s->loop, s->in_fd, s->fd, true, on_in_end, s);
	if (r == 0 && s->keys && s->in.loop)
		r = relay_watch_keys(&s->in, s->keys);
	if (r < 0 || s->attach.stream == AGENT_STREAM_STDIN)
		return r;
	if (s->log && s->out_fd < 0)
		return loop_watch_add(s->loop, &s->watch, s->fd, EPOLLIN, on_log_readable, s);
	r = relay_start(&s->out, s->loop, s->fd, s->out_fd, false, on_out_end, s);
	if (r == 0)
		relay_set_loss(&s->out, on_out_loss);
	/* A log that cannot be kept is no reason to keep the output from its reader. */
	if (r < 0 || !s->log)
		return r;
	log_credit_init(&s->valve, s->log, log_stream(s), clock_monotonic_ns());
	if (relay_set_tap(&s->out, on_out_bytes) < 0)
		s->log->lost++;
	return r;
}

static void on_reply(void *ctx, uint32_t events)
{
	(void)events;
	struct stream *s = ctx;
	struct err why = ERR_INIT;
	int r = first_receive(s->fd, &s->reply, &why);
	if (r == -EAGAIN)
		return;
	loop_watch_remove(&s->watch);
	loop_timer_disarm(&s->limit);
	loop_timer_disarm(&s->later);
	if (r == 0)
		r = start_flow(s);
	if (r < 0 && why.code < 0)
		stream_end(s, &why);
	else if (r == -ECONNRESET) /* of many streams this one may be the first to know */
		end_failed(s, r, "the pod has ended, or its agent");
	else if (r < 0)
		end_failed(s, r, "the agent does not attach it");
}

static void on_attach_limit(void *ctx)
{
	end_failed(ctx, -ETIMEDOUT, "the agent does not attach it");
}

static int send_attach(struct stream *s)
{
	struct json_object *body = NULL;
	int r = agent_attach_encode(&s->attach, &body);
	if (r == 0)
		r = first_send(s->fd, AGENT_ATTACH, body);
	if (r < 0)
		return r;
	s->state = STREAM_ATTACHING;
	return loop_watch_add(s->loop, &s->watch, s->fd, EPOLLIN, on_reply, s);
}

static void attach_if_possible(struct stream *s)
{
	if (s->state != STREAM_CONNECTED || !s->app_exists)
		return;
	int r = send_attach(s);
	if (r < 0)
		end_failed(s, r, "cannot attach");
}

static void on_dialed(void *ctx, int fd)
{
	struct stream *s = ctx;
	if (fd < 0) {
		end_failed(s, fd, "cannot reach the agent");
		return;
	}
	s->fd = fd;
	s->state = STREAM_CONNECTED;
	attach_if_possible(s);
}

int stream_open(struct stream *s, struct loop *loop, const struct stream_plan *plan,
		stream_end_fn ended, void *ctx)
{
	*s = (struct stream){ .attach = plan->attach,
			      .in_fd = plan->in_fd,
			      .out_fd = plan->out_fd,
			      .log = plan->log,
			      .keys = plan->keys,
			      .fd = -EBADF,
			      .ended = ended,
			      .ctx = ctx };
	buf_init(&s->reply, FIRST_REPLY_MAX);
	int r = dial_start(&s->dial, loop, plan->route, AGENT_PORT, on_dialed, s);
	if (r == 0)
		s->loop = loop;
	return r;
}

void stream_app_exists(struct stream *s)
{
	s->app_exists = true;
	if (!s->loop || s->state >= STREAM_ATTACHING)
		return;
	loop_timer_arm(s->loop, &s->limit, clock_monotonic_ns() + FIRST_REPLY_MS * NS_PER_MS,
		       on_attach_limit, s);
	attach_if_possible(s);
}

bool stream_is_stalled(const struct stream *s)
{
	return s->loop && s->state == STREAM_FLOWING && relay_is_stalled(&s->out);
}

bool stream_is_pending(const struct stream *s)
{
	return s->loop && s->state != STREAM_ENDED && s->attach.stream != AGENT_STREAM_STDIN;
}

bool stream_has_lost(const struct stream *s)
{
	return s->lost;
}

bool stream_any(const struct stream *v, size_t n, bool (*is)(const struct stream *s))
{
	for (size_t i = 0; i < n; i++)
		if (is(&v[i]))
			return true;
	return false;
}

uint64_t stream_sum_progress(const struct stream *v, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)v[i].state + v[i].out.moves + v[i].logged;
	return sum;
}

void stream_close(struct stream *s)
{
	if (!s->loop)
		return;
	dial_stop(&s->dial);
	loop_watch_remove(&s->watch);
	loop_timer_disarm(&s->limit);
	loop_timer_disarm(&s->later);
	buf_deinit(&s->reply);
	if (s->valve.log)
		log_credit_end(&s->valve);
	log_credit_deinit(&s->valve);
	relay_stop(&s->in);
	relay_stop(&s->out);
	s->fd = fd_close(s->fd);
	s->loop = NULL;
}
