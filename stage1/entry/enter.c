/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. One event loop. The hello and app.exec are sent in one go; the reply has the
 * number of the process, with which its streams are attached, each on a connection of its own. When
 * exec.exited has come and the outputs have ended, or something that the process left behind keeps
 * them open for ENTER_DRAIN_MS without a byte, all is over. Closing the control connection is what
 * ends the process if this one dies before it.
 */
#include "stage1/entry/enter.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
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
	CALL_EXEC,
	CALL_RESIZE,
	CALL_SIGNAL, /* and above: each has one of its own */
};

#define STREAMS_MAX 3 /* stdin, stdout, stderr; or one terminal */

struct enter {
	const struct enter_input *in;
	struct loop loop;
	struct dial dial;
	struct control control;
	struct controller controller;
	struct loop_timer limit;    /* for the beginning, then for the drain */
	struct loop_timer patience; /* from the first signal to the end */
	struct loop_timer timeout;
	bool timed_out;
	int signal_fd;
	struct loop_watch signal_watch;
	struct tty tty;
	struct stream streams[STREAMS_MAX];
	size_t n_streams;
	int64_t number; /* of the process; 0 before the reply */
	bool program_runs;
	bool exited;
	bool signalled;
	bool resized;       /* the agent has to hear of it */
	int64_t rows, cols; /* as who controls us has it; 0: as our terminal has it */
	uint64_t progress;  /* of the streams, when the limit was armed */
	struct agent_exec_exited how;
	struct err failure; /* the first one */
};

static void enter_fail(struct enter *s, const struct err *why)
{
	if (s->failure.code == 0)
		s->failure = *why;
	loop_quit(&s->loop);
}

static void fail_sys(struct enter *s, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "app \"%s\": %s", s->in->exec->app, what);
	enter_fail(s, &e);
}

static void enter_arm(struct enter *s, int64_t ms, loop_timer_fn fn)
{
	loop_timer_arm(&s->loop, &s->limit, clock_monotonic_ns() + ms * NS_PER_MS, fn, s);
}

/* ---- the end ---- */

static uint64_t progress(const struct enter *s)
{
	return stream_sum_progress(s->streams, s->n_streams);
}

/* An output on the way to the process has a limit of its own. */
static bool is_attaching(const struct stream *st)
{
	return stream_is_pending(st) && !st->flowed;
}

static bool any(const struct enter *s, bool (*is)(const struct stream *st))
{
	return stream_any(s->streams, s->n_streams, is);
}

static void wait_for_output(struct enter *s);

/*
 * Without progress what is left has it open and writes nothing, or the pod is gone; unless our
 * reader takes its time, which is its right: a pipe waits for ever.
 */
static void on_drain_limit(void *ctx)
{
	struct enter *s = ctx;
	if (any(s, is_attaching) || any(s, stream_is_stalled) || progress(s) != s->progress)
		wait_for_output(s);
	else
		loop_quit(&s->loop);
}

static void wait_for_output(struct enter *s)
{
	s->progress = progress(s);
	enter_arm(s, ENTER_DRAIN_MS, on_drain_limit);
}

static void quit_if_done(struct enter *s)
{
	if (!s->exited)
		return;
	if (any(s, stream_is_pending))
		wait_for_output(s);
	else
		loop_quit(&s->loop);
}

/* ---- streams ---- */

/*
 * A stream that breaks has lost what the process wrote, unless it was only left open behind its
 * end.
 */
static void on_stream_end(void *ctx, struct stream *st, const struct err *why)
{
	struct enter *s = ctx;
	if (why && (!s->exited || !st->flowed))
		enter_fail(s, why);
	else
		quit_if_done(s);
}

static int open_stream(struct enter *s, enum agent_stream kind)
{
	struct stream_plan plan = { .route = s->in->route,
				    .attach = { .stream = kind, .exec = s->number },
				    .in_fd = STDIN_FILENO,
				    .out_fd = kind == AGENT_STREAM_STDERR ? STDERR_FILENO
									  : STDOUT_FILENO };
	memcpy(plan.attach.secret, s->in->secret, AGENT_SECRET_LEN);
	memcpy(plan.attach.app, s->in->exec->app, sizeof(plan.attach.app));
	struct stream *st = &s->streams[s->n_streams];
	int r = stream_open(st, &s->loop, &plan, on_stream_end, s);
	if (r < 0)
		return r;
	s->n_streams++;
	stream_app_exists(st);
	return 0;
}

static int open_streams(struct enter *s)
{
	if (s->in->exec->process.with_tty)
		return open_stream(s, AGENT_STREAM_TTY);
	int r = open_stream(s, AGENT_STREAM_STDOUT);
	if (r == 0)
		r = open_stream(s, AGENT_STREAM_STDERR);
	if (r == 0 && s->in->exec->process.with_stdin)
		r = open_stream(s, AGENT_STREAM_STDIN);
	return r;
}

/* ---- the conversation ---- */

/* Whoever controls us knows the size, or our own terminal. */
static void current_size(const struct enter *s, int64_t *rows, int64_t *cols)
{
	*rows = s->rows;
	*cols = s->cols;
	if (*rows == 0 && *cols == 0)
		tty_size(STDIN_FILENO, rows, cols);
}

/* One while another is under way waits for its reply: the last size is what counts. */
static void send_resize(struct enter *s)
{
	struct agent_exec_resize m = { .exec = s->number };
	struct json_object *body = NULL;
	current_size(s, &m.rows, &m.cols);
	int r = agent_exec_resize_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_RESIZE, AGENT_EXEC_RESIZE, body);
	s->resized = r == -EBUSY;
}

static void on_started(struct enter *s, const struct rpc_msg *msg)
{
	struct agent_exec_ref m;
	int r = agent_exec_ref_decode(msg->body, &m);
	if (r == 0) {
		s->number = m.exec;
		/* Who controls us waits for more, and cannot be told to be patient. */
		if (s->in->control_fd < 0)
			loop_timer_disarm(&s->limit);
		r = open_streams(s);
		if (s->resized)
			send_resize(s);
	}
	if (r < 0)
		fail_sys(s, r, "cannot reach the new process");
}

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct enter *s = ctx;
	if (msg->kind == RPC_ERROR && id <= CALL_EXEC) {
		struct err e = ERR_INIT;
		err_set(&e, -EPROTO, "%s", msg->text);
		enter_fail(s, &e);
	} else if (id == CALL_EXEC) {
		on_started(s, msg);
	} else if (id == CALL_RESIZE && s->resized) {
		send_resize(s);
	}
}

static void on_program_started(struct enter *s, const struct rpc_msg *msg)
{
	struct agent_exec_ref m;
	if (agent_exec_ref_decode(msg->body, &m) < 0 || s->number == 0 || m.exec != s->number ||
	    s->program_runs) {
		fail_sys(s, -EPROTO, "the agent reports the beginning of another process");
		return;
	}
	s->program_runs = true;
	if (s->in->control_fd >= 0)
		loop_timer_disarm(&s->limit);
	controller_tell_started(s->in->control_fd);
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	struct enter *s = ctx;
	struct agent_exec_exited m;
	if (strcmp(msg->method, AGENT_EXEC_STARTED) == 0)
		on_program_started(s, msg);
	if (strcmp(msg->method, AGENT_EXEC_EXITED) != 0)
		return; /* how the apps fare is not ours to tell */
	int r = agent_exec_exited_decode(msg->body, &m);
	if (r < 0 || s->exited || m.exec != s->number) {
		fail_sys(s, -EPROTO, "the agent reports the end of another process");
		return;
	}
	s->exited = true;
	s->how = m;
	loop_timer_disarm(&s->limit);
	controller_tell_exited(s->in->control_fd, &m);
	quit_if_done(s);
}

static void on_control_closed(void *ctx, const struct err *why)
{
	struct enter *s = ctx;
	struct err e = *why;
	if (s->exited)
		return;
	err_context(&e, "app \"%s\": the pod has ended, or its agent", s->in->exec->app);
	enter_fail(s, &e);
}

static const struct control_ops control_ops = {
	.reply = on_reply,
	.notification = on_notification,
	.closed = on_control_closed,
};

static int send_requests(struct enter *s)
{
	struct json_object *body = NULL;
	struct agent_process *p = &s->in->exec->process;
	if (p->with_tty)
		current_size(s, &p->rows, &p->cols);
	s->resized = false;
	int r = control_hello(&s->control, CALL_HELLO, s->in->secret);
	if (r == 0)
		r = agent_app_exec_encode(s->in->exec, &body);
	return r < 0 ? r : control_call(&s->control, CALL_EXEC, AGENT_APP_EXEC, body);
}

static void on_dialed(void *ctx, int fd)
{
	struct enter *s = ctx;
	int r = fd < 0 ? fd : control_open(&s->control, &s->loop, fd, &control_ops, s);
	if (r == 0)
		r = send_requests(s);
	if (r == -EILSEQ)
		fail_sys(s, r, "arguments and environment must be UTF-8");
	else if (r == -EMSGSIZE)
		fail_sys(s, r, "arguments and environment are too long for one message");
	else if (r < 0)
		fail_sys(s, r, "cannot reach the agent");
}

/* Who ends with us, as its control connection does: nobody has to be asked. */
static void on_timeout(void *ctx)
{
	struct enter *s = ctx;
	s->timed_out = true;
	loop_quit(&s->loop);
}

static void on_reply_limit(void *ctx)
{
	fail_sys(ctx, -ETIMEDOUT, "the agent does not answer");
}

/* ---- signals ---- */

static void on_patience_limit(void *ctx)
{
	struct enter *s = ctx;
	if (!s->exited)
		fail_sys(s, -EINTR, "the process did not end after a signal, and is killed");
}

/* With as many on their way as there may be, one more is refused. */
static int call_signal(struct enter *s, int64_t number)
{
	const struct agent_exec_signal m = { .exec = s->number, .signal = number };
	struct json_object *body = NULL;
	int id = CALL_SIGNAL;
	while (id < CONTROL_CALLS_MAX - 1 && s->control.outstanding[id])
		id++;
	int r = s->number == 0 ? -ESRCH : agent_exec_signal_encode(&m, &body);
	return r < 0 ? r : control_call(&s->control, id, AGENT_EXEC_SIGNAL, body);
}

/*
 * The first goes to the process. A second one, or no end of the process within a while, ends us and
 * with us it: neither it nor an agent that lies can hold us. So does one that comes before the
 * process is there.
 */
static void send_signal(struct enter *s, uint32_t number)
{
	if (s->exited) { /* and somebody does not read its output */
		fail_sys(s, -EINTR, "not all output was delivered");
		return;
	}
	if (s->signalled) {
		on_patience_limit(s);
		return;
	}
	s->signalled = true;
	loop_timer_arm(&s->loop, &s->patience, clock_monotonic_ns() + ENTER_PATIENCE_MS * NS_PER_MS,
		       on_patience_limit, s);
	if (call_signal(s, number) < 0)
		fail_sys(s, -EINTR, "interrupted");
}

static void resize(struct enter *s)
{
	s->resized = s->in->exec->process.with_tty;
	if (s->resized && s->number > 0)
		send_resize(s);
}

/* Who is told that the process runs, and that it has ended, knows what becomes of it. */
static void on_control_signal(void *ctx, int64_t number)
{
	call_signal(ctx, number);
}

static void on_control_resize(void *ctx, int64_t rows, int64_t cols)
{
	struct enter *s = ctx;
	s->rows = rows;
	s->cols = cols;
	resize(s);
}

static const struct controller_ops controller_ops = {
	.signal = on_control_signal,
	.resize = on_control_resize,
};

static void on_signal(void *ctx, uint32_t events)
{
	struct enter *s = ctx;
	struct signalfd_siginfo info;
	(void)events;
	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGWINCH)
		send_signal(s, info.ssi_signo);
	else
		resize(s);
}

static int watch_signals(struct enter *s)
{
	s->signal_fd = tty_signal_fd();
	if (s->signal_fd < 0)
		return s->signal_fd;
	return loop_watch_add(&s->loop, &s->signal_watch, s->signal_fd, EPOLLIN, on_signal, s);
}

/* ---- life ---- */

static void enter_deinit(struct enter *s)
{
	tty_restore(&s->tty);
	loop_timer_disarm(&s->limit);
	loop_timer_disarm(&s->patience);
	loop_timer_disarm(&s->timeout);
	dial_stop(&s->dial);
	controller_ignore(&s->controller);
	control_close(&s->control);
	for (size_t i = 0; i < s->n_streams; i++)
		stream_close(&s->streams[i]);
	loop_watch_remove(&s->signal_watch);
	s->signal_fd = fd_close(s->signal_fd);
	loop_deinit(&s->loop);
}

static int enter_start(struct enter *s)
{
	int r = watch_signals(s);
	if (r == 0)
		r = controller_listen(&s->controller, &s->loop, s->in->control_fd, &controller_ops,
				      s);
	enter_arm(s, ENTER_REPLY_MS, on_reply_limit);
	if (s->in->timeout_ms > 0)
		loop_timer_arm(&s->loop, &s->timeout,
			       clock_monotonic_ns() + s->in->timeout_ms * NS_PER_MS, on_timeout, s);
	if (r == 0)
		r = dial_start(&s->dial, &s->loop, s->in->route, AGENT_PORT, on_dialed, s);
	if (r < 0)
		return r;
	if (s->in->exec->process.with_tty && tty_make_raw(&s->tty, STDIN_FILENO) < 0)
		s->tty = TTY_INIT;
	return loop_run(&s->loop);
}

static int status_of(const struct agent_exec_exited *how)
{
	return how->signal > 0 ? ENTER_SIGNAL_STATUS + (int)how->signal : (int)how->code;
}

int enter_run(const struct enter_input *in, int *ret_status, struct err *e)
{
	CLEANUP(enter_deinit)
	struct enter s = { .in = in,
			   .signal_fd = -EBADF,
			   .signal_watch = LOOP_WATCH_INIT,
			   .controller = CONTROLLER_NONE,
			   .tty = TTY_INIT,
			   .loop = { .epoll_fd = -EBADF } };
	int r = loop_init(&s.loop);
	if (r == 0)
		r = enter_start(&s);
	if (r < 0)
		return err_sys(e, r, "app \"%s\": cannot reach the agent", in->exec->app);
	if (s.failure.code < 0) {
		*e = s.failure;
		return s.failure.code;
	}
	tty_restore(&s.tty);
	if (s.timed_out) {
		dprintf(STDERR_FILENO, "stage1: app \"%s\": the command was ended after %jd ms\n",
			in->exec->app, (intmax_t)in->timeout_ms);
		*ret_status = ENTER_TIMEOUT_STATUS;
		return 0;
	}
	if (s.how.message[0] && in->control_fd < 0) {
		struct err text = ERR_INIT; /* makes the agent's words printable */
		err_set(&text, -EIO, "app \"%s\": %s", in->exec->app, s.how.message);
		dprintf(STDERR_FILENO, "stage1: %s\n", text.text);
	}
	*ret_status = status_of(&s.how);
	return 0;
}
