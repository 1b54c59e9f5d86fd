/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. One event loop. Each stream is on a connection of its own, as for the
 * supervisor. A terminal also needs a control connection, for its size; the other kinds do not.
 */
#include "stage1/entry/attach.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/loop.h"
#include "stage1/agent/control.h"
#include "stage1/entry/controller.h"
#include "stage1/streams/stream.h"
#include "stage1/streams/tty.h"

enum call {
	CALL_HELLO,
	CALL_RESIZE,
};

struct attach {
	const struct attach_input *in;
	struct loop loop;
	struct dial dial;
	struct control control;
	struct controller controller;
	struct loop_timer limit;
	int signal_fd;
	struct loop_watch signal_watch;
	struct tty tty;
	struct detach_keys keys;
	struct stream streams[AGENT_STREAM_COUNT_];
	size_t n_streams;
	bool left;          /* by the keys */
	bool resized;       /* the agent has to hear of it */
	int64_t rows, cols; /* as who controls us has it; 0: as our terminal has it */
	struct err failure; /* the first one */
};

static void attach_fail(struct attach *s, const struct err *why)
{
	if (s->failure.code == 0)
		s->failure = *why;
	loop_quit(&s->loop);
}

static void fail_sys(struct attach *s, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "app \"%s\": %s", s->in->app, what);
	attach_fail(s, &e);
}

/* ---- streams ---- */

static bool any_output(const struct attach *s)
{
	return stream_any(s->streams, s->n_streams, stream_is_pending);
}

/* What we write to the app is not waited for while there is something to read from it. */
static void on_stream_end(void *ctx, struct stream *st, const struct err *why)
{
	struct attach *s = ctx;
	bool only_input = !s->in->streams[AGENT_STREAM_STDOUT] &&
			  !s->in->streams[AGENT_STREAM_STDERR] && !s->in->streams[AGENT_STREAM_TTY];
	s->left = st->left;
	if (why)
		attach_fail(s, why);
	else if (s->left || only_input || !any_output(s))
		loop_quit(&s->loop);
}

static int open_stream(struct attach *s, enum agent_stream kind)
{
	struct stream_plan plan = {
		.route = s->in->route,
		.attach = { .stream = kind,
			    .end_stdin = kind == AGENT_STREAM_STDIN && !s->in->keep_stdin },
		.in_fd = STDIN_FILENO,
		.out_fd = kind == AGENT_STREAM_STDERR ? STDERR_FILENO : STDOUT_FILENO,
		.keys = s->tty.fd >= 0 ? &s->keys : NULL
	};
	memcpy(plan.attach.secret, s->in->secret, AGENT_SECRET_LEN);
	int r = str_copy(plan.attach.app, sizeof(plan.attach.app), s->in->app);
	struct stream *st = &s->streams[s->n_streams];
	if (r == 0)
		r = stream_open(st, &s->loop, &plan, on_stream_end, s);
	if (r < 0)
		return r;
	s->n_streams++;
	stream_app_exists(st);
	return 0;
}

/* ---- the size of a terminal ---- */

/* One while another is under way waits for its reply: the last size is what counts. */
static void send_resize(struct attach *s)
{
	struct agent_app_resize m = { .rows = s->rows, .cols = s->cols };
	struct json_object *body = NULL;
	if (m.rows == 0 && m.cols == 0)
		tty_size(STDIN_FILENO, &m.rows, &m.cols);
	int r = str_copy(m.app, sizeof(m.app), s->in->app);
	if (r == 0)
		r = agent_app_resize_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_RESIZE, AGENT_APP_RESIZE, body);
	s->resized = r == -EBUSY;
}

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct attach *s = ctx;
	if (msg->kind == RPC_ERROR && id == CALL_HELLO) {
		struct err e = ERR_INIT;
		err_set(&e, -EPROTO, "%s", msg->text);
		attach_fail(s, &e);
	} else if (id == CALL_RESIZE && s->resized) {
		send_resize(s);
	}
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	(void)ctx;
	(void)msg; /* the end of the app shows in its streams */
}

static void on_control_closed(void *ctx, const struct err *why)
{
	struct attach *s = ctx;
	struct err e = *why;
	if (!any_output(s))
		return;
	err_context(&e, "app \"%s\": the pod has ended, or its agent", s->in->app);
	attach_fail(s, &e);
}

static const struct control_ops control_ops = {
	.reply = on_reply,
	.notification = on_notification,
	.closed = on_control_closed,
};

static void on_dialed(void *ctx, int fd)
{
	struct attach *s = ctx;
	int r = fd < 0 ? fd : control_open(&s->control, &s->loop, fd, &control_ops, s);
	if (r == 0)
		r = control_hello(&s->control, CALL_HELLO, s->in->secret);
	if (r < 0)
		fail_sys(s, r, "cannot reach the agent");
	else if (s->in->control_fd < 0 || s->resized)
		send_resize(s);
}

/* What comes before the agent was reached is sent then. */
static void resize(struct attach *s)
{
	s->resized = true;
	if (s->control.loop)
		send_resize(s);
}

static void on_control_resize(void *ctx, int64_t rows, int64_t cols)
{
	struct attach *s = ctx;
	s->rows = rows;
	s->cols = cols;
	resize(s);
}

static const struct controller_ops controller_ops = { .resize = on_control_resize };

/* ---- signals ---- */

static void on_signal(void *ctx, uint32_t events)
{
	struct attach *s = ctx;
	struct signalfd_siginfo info;
	(void)events;
	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGWINCH)
		loop_quit(&s->loop);
	else
		resize(s);
}

static int watch_signals(struct attach *s)
{
	s->signal_fd = tty_signal_fd();
	if (s->signal_fd < 0)
		return s->signal_fd;
	return loop_watch_add(&s->loop, &s->signal_watch, s->signal_fd, EPOLLIN, on_signal, s);
}

/* ---- life ---- */

static void on_reply_limit(void *ctx)
{
	struct attach *s = ctx;
	for (size_t i = 0; i < s->n_streams; i++)
		if (!s->streams[i].flowed)
			fail_sys(s, -ETIMEDOUT, "the agent does not answer");
}

static void attach_deinit(struct attach *s)
{
	tty_restore(&s->tty);
	loop_timer_disarm(&s->limit);
	dial_stop(&s->dial);
	controller_ignore(&s->controller);
	control_close(&s->control);
	for (size_t i = 0; i < s->n_streams; i++)
		stream_close(&s->streams[i]);
	loop_watch_remove(&s->signal_watch);
	s->signal_fd = fd_close(s->signal_fd);
	loop_deinit(&s->loop);
}

static int attach_start(struct attach *s)
{
	int r = watch_signals(s);
	if (r == 0)
		r = controller_listen(&s->controller, &s->loop, s->in->control_fd, &controller_ops,
				      s);
	loop_timer_arm(&s->loop, &s->limit, clock_monotonic_ns() + ATTACH_REPLY_MS * NS_PER_MS,
		       on_reply_limit, s);
	/* Only of a raw terminal each key comes when it is typed. */
	if (s->in->streams[AGENT_STREAM_TTY] && tty_make_raw(&s->tty, STDIN_FILENO) < 0)
		s->tty = TTY_INIT;
	for (int kind = 0; r == 0 && kind < AGENT_STREAM_COUNT_; kind++)
		if (s->in->streams[kind])
			r = open_stream(s, (enum agent_stream)kind);
	if (r < 0 || !s->in->streams[AGENT_STREAM_TTY])
		return r;
	return dial_start(&s->dial, &s->loop, s->in->route, AGENT_PORT, on_dialed, s);
}

int attach_run(const struct attach_input *in, struct err *e)
{
	CLEANUP(attach_deinit)
	struct attach s = { .in = in,
			    .keys = in->detach_keys,
			    .signal_fd = -EBADF,
			    .signal_watch = LOOP_WATCH_INIT,
			    .controller = CONTROLLER_NONE,
			    .tty = TTY_INIT,
			    .loop = { .epoll_fd = -EBADF } };
	int r = loop_init(&s.loop);
	if (r == 0)
		r = attach_start(&s);
	if (r == 0)
		r = loop_run(&s.loop);
	if (r < 0)
		return err_sys(e, r, "app \"%s\": cannot reach the agent", in->app);
	if (s.failure.code < 0) {
		*e = s.failure;
		return s.failure.code;
	}
	if (stream_any(s.streams, s.n_streams, stream_has_lost))
		return ATTACH_LOST;
	return s.left ? ATTACH_LEFT : 0;
}
