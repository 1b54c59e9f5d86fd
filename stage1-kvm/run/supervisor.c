/*
 * Theory of operation. One event loop; nothing in it blocks. A pod goes through these states:
 *
 *   BOOT  The VM runs, the agent has not answered yet. The supervisor dials; every console line and
 *         a timer make it try again. Behind the hello, pod.setup and, for each app, app.add and
 *         app.start are sent in one go. Ends with the hello's reply, or at the boot time limit.
 *   RUN   Streams attach as the apps appear. app.exited notifications are recorded on disk.
 *   STOP  pod.shutdown is sent: all apps have ended, or one failed, or somebody asked for it. The
 *         streams go on. Ends when the guest has unmounted everything and all output is out.
 *   QUIT  QEMU was told to quit; its end is awaited for a limited time.
 *   GONE  QEMU has ended; the loop returns.
 *
 * The end of QEMU or husk-vsock in any state but QUIT, a broken agent connection before the guest is
 * down, a call that the agent refuses: each is a failure. The first failure is kept, QEMU is
 * killed, and the caller prints the one line.
 */
#include "stage1-kvm/run/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/notify.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/run/control.h"
#include "stage1-kvm/run/podfiles.h"
#include "stage1-kvm/run/stream.h"
#include "stage1-kvm/run/tty.h"

enum state {
	STATE_BOOT,
	STATE_RUN,
	STATE_STOP,
	STATE_QUIT,
	STATE_GONE,
};

/* Calls to the agent; a call's id is its kind and the app it is about. */
enum call {
	CALL_HELLO,
	CALL_SETUP,
	CALL_ADD,
	CALL_START,
	CALL_RESIZE,
	CALL_SHUTDOWN,
	CALL_COUNT_,
};

#define CALL_ID(call, app) ((int)(call)*AGENT_APPS_MAX + (int)(app))
_Static_assert(CALL_COUNT_ *AGENT_APPS_MAX <= CONTROL_CALLS_MAX, "call ids fit");

#define STREAMS_PER_APP 3

struct app {
	const struct agent_app_add *spec; /* borrowed */
	bool exited;
	struct stream streams[STREAMS_PER_APP];
	size_t n_streams;
	struct applog log; /* of a detached pod */
};

struct supervisor {
	const struct supervisor_input *in;
	struct loop *loop;
	struct timeline *timeline;
	struct machine *machine;
	enum state state;
	struct err failure;   /* the first one */
	struct err suspicion; /* what looks like a failure, until its cause shows */
	int status;           /* of the first app that failed */
	bool guest_down;
	bool asked_to_stop; /* by a signal */
	bool resized;       /* the agent has to hear of it */
	uint64_t progress;  /* of all output, when the limit for it was armed */
	struct dial_target target;
	struct dial dial;
	struct control control;
	struct loop_timer retry, limit, doubt; /* to dial, of the state, of a suspicion */
	int signal_fd;
	struct loop_watch signal_watch;
	struct tty tty;
	struct app apps[AGENT_APPS_MAX];
	size_t n_apps, n_started, n_exited;
};

static void fail(struct supervisor *s, const struct err *why)
{
	if (s->failure.code == 0)
		s->failure = *why;
	machine_kill(s->machine);
}

static void fail_sys(struct supervisor *s, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "%s", what);
	fail(s, &e);
}

static void arm(struct supervisor *s, struct loop_timer *t, int64_t ms, loop_timer_fn fn)
{
	loop_timer_arm(s->loop, t, clock_monotonic_ns() + ms * NS_PER_MS, fn, s);
}

static void on_doubt_limit(void *ctx)
{
	struct supervisor *s = ctx;
	fail(s, &s->suspicion);
}

/*
 * When a process dies, its sockets are seen to close before its end is. So what a broken connection
 * says is believed only if no such end explains it within a moment.
 */
static void suspect(struct supervisor *s, const struct err *why)
{
	if (s->suspicion.code != 0)
		return; /* the first is nearest to the cause, unless a process ended */
	s->suspicion = *why;
	arm(s, &s->doubt, SUSPICION_MS, on_doubt_limit);
}

/* Nobody is at the guest's vsock: husk-vsock ends with QEMU, and QEMU with a guest that panics. */
static void suspect_dial(struct supervisor *s, int code)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "vsock: cannot dial the guest");
	suspect(s, &e);
}

/* ---- the way down ---- */

static void on_quit_limit(void *ctx)
{
	struct supervisor *s = ctx;
	machine_kill(s->machine);
}

static void quit_machine(struct supervisor *s)
{
	s->state = STATE_QUIT;
	control_close(&s->control);
	arm(s, &s->limit, QUIT_LIMIT_MS, on_quit_limit);
	machine_quit(s->machine);
}

static bool any_stream(const struct supervisor *s, bool (*is)(const struct stream *st))
{
	for (size_t i = 0; i < s->n_apps; i++)
		if (stream_any(s->apps[i].streams, s->apps[i].n_streams, is))
			return true;
	return false;
}

static uint64_t output_progress(const struct supervisor *s)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->n_apps; i++)
		sum += stream_sum_progress(s->apps[i].streams, s->apps[i].n_streams);
	return sum;
}

static void drain(struct supervisor *s);

/* A reader that does not read is within its rights: a pipe waits for ever. */
static void on_drain_limit(void *ctx)
{
	struct supervisor *s = ctx;
	if (any_stream(s, stream_is_stalled) || output_progress(s) != s->progress)
		drain(s);
	else
		quit_machine(s);
}

static void drain(struct supervisor *s)
{
	s->progress = output_progress(s);
	arm(s, &s->limit, DRAIN_LIMIT_MS, on_drain_limit);
}

static void quit_if_done(struct supervisor *s)
{
	if (s->state != STATE_STOP || !s->guest_down)
		return;
	if (any_stream(s, stream_is_pending)) {
		drain(s);
		return;
	}
	timeline_reach(s->timeline, MARK_APP_OUTPUT);
	quit_machine(s);
}

static void on_stop_limit(void *ctx)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	err_set(&e, -ETIMEDOUT, "the guest did not shut down within %jd s and was killed",
		(intmax_t)(STOP_GRACE_MS + STOP_LIMIT_MS) / 1000);
	fail(s, &e);
}

static void begin_stop(struct supervisor *s)
{
	if (s->state != STATE_RUN)
		return;
	s->state = STATE_STOP;
	const struct agent_pod_shutdown m = { .grace_ms = STOP_GRACE_MS };
	struct json_object *body = NULL;
	int r = agent_pod_shutdown_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_ID(CALL_SHUTDOWN, 0), AGENT_POD_SHUTDOWN, body);
	if (r < 0)
		fail_sys(s, r, "guest agent: cannot ask for shutdown");
	else
		arm(s, &s->limit, STOP_GRACE_MS + STOP_LIMIT_MS, on_stop_limit);
}

/* ---- streams ---- */

static void on_stream_end(void *ctx, struct stream *st, const struct err *why)
{
	struct supervisor *s = ctx;
	(void)st;
	/* While the guest goes down a stream may break at any stage; what matters was said. */
	if (why && s->state == STATE_RUN)
		suspect(s, why);
	else
		quit_if_done(s);
}

static void open_stream(struct supervisor *s, struct app *app, enum agent_stream kind)
{
	struct stream_plan plan = { .target = &s->target,
				    .attach = { .stream = kind },
				    .in_fd = STDIN_FILENO,
				    .out_fd = kind == AGENT_STREAM_STDERR ? STDERR_FILENO
									  : STDOUT_FILENO,
				    .log = s->in->detach ? &app->log : NULL };
	memcpy(plan.attach.secret, s->in->secret, AGENT_SECRET_LEN);
	memcpy(plan.attach.app, app->spec->app, sizeof(plan.attach.app));
	struct stream *st = &app->streams[app->n_streams];
	int r = stream_open(st, s->loop, &plan, on_stream_end, s);
	if (r < 0)
		suspect_dial(s, r);
	else
		app->n_streams++;
}

/*
 * Only a pod of one app has the user's input, and a terminal only if it is interactive: a pod in
 * the background must not fight for the keyboard. /dev/null needs no stream: the agent has one, too.
 */
static bool wants_stdin(const struct supervisor *s)
{
	if (s->in->interactive)
		return true;
	return s->n_apps == 1 && !isatty(STDIN_FILENO) && !fd_is_dev_null(STDIN_FILENO);
}

static void open_streams(struct supervisor *s, struct app *app)
{
	if (s->in->interactive) {
		open_stream(s, app, AGENT_STREAM_TTY);
		return;
	}
	open_stream(s, app, AGENT_STREAM_STDOUT);
	open_stream(s, app, AGENT_STREAM_STDERR);
	if (wants_stdin(s))
		open_stream(s, app, AGENT_STREAM_STDIN);
}

/* ---- calls ---- */

static int send_setup(struct supervisor *s)
{
	struct agent_pod_setup m = s->in->plan->setup;
	m.clock_ns = clock_realtime_ns();
	int r = str_copy(m.hostname, sizeof(m.hostname), s->in->hostname);
	struct json_object *body = NULL;
	if (r == 0)
		r = agent_pod_setup_encode(&m, &body);
	return r < 0 ? r : control_call(&s->control, CALL_ID(CALL_SETUP, 0), AGENT_POD_SETUP, body);
}

static int send_add(struct supervisor *s, size_t i)
{
	struct agent_app_add m = *s->apps[i].spec; /* its lists stay the plan's */
	m.process.with_tty = s->in->interactive;
	m.process.with_stdin = wants_stdin(s);
	if (m.process.with_tty)
		tty_size(STDIN_FILENO, &m.process.rows, &m.process.cols);
	struct json_object *body = NULL;
	int r = agent_app_add_encode(&m, &body);
	return r < 0 ? r : control_call(&s->control, CALL_ID(CALL_ADD, i), AGENT_APP_ADD, body);
}

static int send_start(struct supervisor *s, size_t i)
{
	struct agent_app_ref m;
	memcpy(m.app, s->apps[i].spec->app, sizeof(m.app));
	struct json_object *body = NULL;
	int r = agent_app_ref_encode(&m, &body);
	return r < 0 ? r : control_call(&s->control, CALL_ID(CALL_START, i), AGENT_APP_START, body);
}

/*
 * Everything at once, behind the hello: the agent works through it in order, without a round trip in
 * between. If it refuses the hello, it refuses the rest, and the hello's reply comes first.
 */
_Static_assert(AGENT_VERSION_MIN == AGENT_VERSION_MAX,
	       "with a choice of versions, wait for the hello's reply before sending more");

static int send_pod(struct supervisor *s)
{
	int r = send_setup(s);
	for (size_t i = 0; r == 0 && i < s->n_apps; i++) {
		r = send_add(s, i);
		if (r == 0)
			r = send_start(s, i);
	}
	return r;
}

/* One while another is under way waits for its reply: the last size is what counts. */
static void send_resize(struct supervisor *s)
{
	if (!s->in->interactive || s->state != STATE_RUN)
		return;
	struct agent_app_resize m = { 0 };
	memcpy(m.app, s->apps[0].spec->app, sizeof(m.app));
	tty_size(STDIN_FILENO, &m.rows, &m.cols);
	struct json_object *body = NULL;
	int r = agent_app_resize_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_ID(CALL_RESIZE, 0), AGENT_APP_RESIZE, body);
	s->resized = r == -EBUSY;
}

/* The agent is there: time to attach to the streams and to obey. */
static void enter_run(struct supervisor *s)
{
	s->state = STATE_RUN;
	loop_timer_disarm(&s->limit);
	timeline_reach(s->timeline, MARK_AGENT);
	for (size_t i = 0; i < s->n_apps; i++)
		open_streams(s, &s->apps[i]);
	if (s->asked_to_stop)
		begin_stop(s);
}

static void on_hello(struct supervisor *s, const struct rpc_msg *msg)
{
	struct agent_hello_reply reply;
	int r = agent_hello_reply_decode(msg->body, &reply);
	if (r == 0)
		r = agent_choose_version(reply.version, reply.version);
	if (r < 0)
		fail_sys(s, r, "guest agent: its hello is not understood");
	else
		enter_run(s);
}

static void refuse(struct supervisor *s, enum call call, size_t app, const struct rpc_msg *msg)
{
	static const char *const names[CALL_COUNT_] = { AGENT_HELLO,      AGENT_POD_SETUP,
							AGENT_APP_ADD,    AGENT_APP_START,
							AGENT_APP_RESIZE, AGENT_POD_SHUTDOWN };
	struct err e = ERR_INIT;
	if (call == CALL_ADD || call == CALL_START)
		err_set(&e, -EPROTO, "app \"%s\": %s: %s", s->apps[app].spec->app, names[call],
			msg->text);
	else
		err_set(&e, -EPROTO, "guest agent: %s: %s", names[call], msg->text);
	fail(s, &e);
}

static void on_added(struct supervisor *s, struct app *app)
{
	for (size_t i = 0; i < app->n_streams; i++)
		stream_app_exists(&app->streams[i]);
	(void)s;
}

static void on_started(struct supervisor *s, const struct app *app)
{
	timeline_reach(s->timeline, MARK_APP_STARTED);
	podfiles_note_started(s->in->pod_fd, app->spec->app);
	if (++s->n_started < s->n_apps)
		return;
	/* From here on the pod does not end with whoever started it. */
	if (s->in->detach)
		prctl(PR_SET_PDEATHSIG, 0);
	int r = podfiles_note_ready(s->in->pod_fd);
	if (r < 0) { /* somebody waits for it */
		fail_sys(s, r, "pod directory: cannot write \"" POD_FILE_READY "\"");
		return;
	}
	notify_send(s->in->notify, "READY=1"); /* a manager that does not listen is no failure */
}

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct supervisor *s = ctx;
	enum call call = (enum call)(id / AGENT_APPS_MAX);
	size_t app = (size_t)id % AGENT_APPS_MAX;
	if (msg->kind == RPC_ERROR && call != CALL_RESIZE) {
		refuse(s, call, app, msg);
		return;
	}
	switch (call) {
	case CALL_HELLO:
		on_hello(s, msg);
		return;
	case CALL_ADD:
		on_added(s, &s->apps[app]);
		return;
	case CALL_START:
		on_started(s, &s->apps[app]);
		return;
	case CALL_SHUTDOWN:
		timeline_reach(s->timeline, MARK_GUEST_DOWN);
		s->guest_down = true;
		quit_if_done(s);
		return;
	case CALL_RESIZE:
		if (s->resized)
			send_resize(s);
		return;
	case CALL_SETUP:
	case CALL_COUNT_:
		return;
	}
}

/* ---- apps ---- */

static struct app *find_app(struct supervisor *s, const char *name)
{
	for (size_t i = 0; i < s->n_apps; i++)
		if (strcmp(s->apps[i].spec->app, name) == 0)
			return &s->apps[i];
	return NULL;
}

static void note_app_exit(struct supervisor *s, struct app *app, const struct agent_app_exited *m)
{
	app->exited = true;
	s->n_exited++;
	int status = m->signal ? (int)m->signal : (int)m->code;
	/* What the stop itself ends has not failed. */
	if (status != 0 && s->status == 0 && s->state == STATE_RUN)
		s->status = status;
	if (s->n_exited == s->n_apps)
		timeline_reach(s->timeline, MARK_APP_EXITED);
	if (s->n_exited == s->n_apps || s->status != 0)
		begin_stop(s);
	/* Syncing takes a while: the guest is going down meanwhile. */
	podfiles_note_exited(s->in->pod_fd, app->spec->app, status);
	if (m->message[0]) {
		struct err text = ERR_INIT; /* makes the guest's words printable */
		err_set(&text, -EIO, "app \"%s\": %s", app->spec->app, m->message);
		dprintf(STDERR_FILENO, "stage1: %s\n", text.text);
	}
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	struct supervisor *s = ctx;
	struct agent_app_exited m;
	if (strcmp(msg->method, AGENT_APP_EXITED) != 0)
		return; /* a newer agent may say more */
	int r = agent_app_exited_decode(msg->body, &m);
	struct app *app = r == 0 ? find_app(s, m.app) : NULL;
	if (!app || app->exited)
		fail_sys(s, -EPROTO, "guest agent: reports the end of an app that does not run");
	else
		note_app_exit(s, app, &m);
}

static void on_control_closed(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	if (!s->guest_down)
		suspect(s, why);
}

static const struct control_ops control_ops = {
	.reply = on_reply,
	.notification = on_notification,
	.closed = on_control_closed,
};

/* ---- the way up ---- */

static void on_retry(void *ctx);

static void on_dialed(void *ctx, int fd)
{
	struct supervisor *s = ctx;
	if (fd < 0) {
		arm(s, &s->retry, DIAL_RETRY_MS, on_retry);
		return;
	}
	int r = control_open(&s->control, s->loop, fd, &control_ops, s);
	struct agent_hello m = { .version_min = AGENT_VERSION_MIN,
				 .version_max = AGENT_VERSION_MAX };
	memcpy(m.secret, s->in->secret, AGENT_SECRET_LEN);
	struct json_object *body = NULL;
	if (r == 0)
		r = agent_hello_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_ID(CALL_HELLO, 0), AGENT_HELLO, body);
	if (r == 0)
		r = send_pod(s);
	if (r < 0)
		fail_sys(s, r, "guest agent: cannot send it the pod");
}

static void dial_agent(struct supervisor *s)
{
	loop_timer_disarm(&s->retry);
	int r = dial_start(&s->dial, s->loop, &s->target, AGENT_PORT, on_dialed, s);
	if (r < 0)
		suspect_dial(s, r);
}

static void on_retry(void *ctx)
{
	struct supervisor *s = ctx;
	if (s->state == STATE_BOOT && !s->dial.loop && !s->control.loop)
		dial_agent(s);
}

static void on_boot_limit(void *ctx)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	err_set(&e, -ETIMEDOUT,
		"the guest did not answer within %ju s; its last line: \"%s\" (see %s in the pod "
		"directory, or raise --boot-timeout)",
		(uintmax_t)s->in->boot_timeout_s, s->machine->console.last, POD_FILE_CONSOLE);
	fail(s, &e);
}

/* ---- the machine ---- */

static void on_console(void *ctx)
{
	struct supervisor *s = ctx;
	timeline_reach(s->timeline, MARK_KERNEL);
	on_retry(s); /* the agent prints a line when it listens */
}

static void on_qmp_up(void *ctx)
{
	struct supervisor *s = ctx;
	timeline_reach(s->timeline, MARK_QMP);
}

/* Why QEMU ended when it should not have: the guest's own last words tell more than an exit code. */
static void explain_end(struct supervisor *s, const char *how, struct err *e)
{
	const struct console *c = &s->machine->console;
	if (c->panic[0])
		err_set(e, -EIO, "the guest kernel panicked: \"%s\" (see %s in the pod directory)",
			c->panic, POD_FILE_CONSOLE);
	else if (s->machine->qmp_up)
		err_set(e, -EIO,
			"the VM ended unexpectedly: QEMU: %s (see %s in the pod directory)", how,
			POD_FILE_CONSOLE);
	else
		err_set(e, -EIO, "QEMU did not start: %s", how);
}

static void on_qemu_ended(void *ctx, const char *how)
{
	struct supervisor *s = ctx;
	timeline_reach(s->timeline, MARK_VM_GONE);
	if (s->state != STATE_QUIT && s->failure.code == 0)
		explain_end(s, how, &s->failure);
	else if (s->failure.code == 0)
		s->failure = s->suspicion; /* ended in good order, and still a stream broke */
	s->state = STATE_GONE;
	loop_quit(s->loop);
}

static void on_vsock_ended(void *ctx, const char *how)
{
	struct supervisor *s = ctx;
	if (s->state == STATE_QUIT || s->state == STATE_GONE)
		return;
	struct err e = ERR_INIT;
	err_set(&e, -EIO, "the vsock device ended unexpectedly: husk-vsock: %s", how);
	s->suspicion = ERR_INIT; /* this explains what broke before */
	suspect(s, &e);          /* it also ends when QEMU does, whose end tells more */
}

const struct machine_ops supervisor_machine_ops = {
	.console = on_console,
	.qmp_up = on_qmp_up,
	.qemu_ended = on_qemu_ended,
	.vsock_ended = on_vsock_ended,
};

/* ---- signals ---- */

/*
 * A second interrupt from the keyboard means "now"; any number of processes may send SIGTERM. A guest
 * that has not come up has nothing to end in good order.
 */
static void on_stop_signal(struct supervisor *s, uint32_t sig)
{
	if ((s->asked_to_stop && sig == SIGINT) || s->state == STATE_BOOT) {
		fail_sys(s, -EINTR, "pod killed on request");
		return;
	}
	if (s->state == STATE_STOP && s->guest_down && any_stream(s, stream_is_stalled)) {
		quit_machine(s); /* all that is left is a reader that does not read */
		return;
	}
	s->asked_to_stop = true;
	begin_stop(s);
}

static void on_signal(void *ctx, uint32_t events)
{
	(void)events;
	struct supervisor *s = ctx;
	struct signalfd_siginfo info;
	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		send_resize(s);
	else
		on_stop_signal(s, info.ssi_signo);
}

static int watch_signals(struct supervisor *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	s->signal_fd = loop_signal_fd(&set);
	if (s->signal_fd < 0)
		return s->signal_fd;
	/* A reader that has gone shows as EPIPE. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	return loop_watch_add(s->loop, &s->signal_watch, s->signal_fd, EPOLLIN, on_signal, s);
}

/* ---- life ---- */

static int open_logs(struct supervisor *s, struct err *e)
{
	for (size_t i = 0; i < s->n_apps; i++) {
		int r = applog_open(&s->apps[i].log, s->in->pod_fd, s->apps[i].spec->app);
		if (r < 0)
			return err_sys(e, r, "pod directory: cannot open the log of app \"%s\"",
				       s->apps[i].spec->app);
	}
	return 0;
}

static void close_log(struct app *app)
{
	if (app->log.lost > 0)
		dprintf(STDERR_FILENO,
			"stage1: app \"%s\": %ju pieces of its output could not be logged (is the "
			"disk full?)\n",
			app->spec->app, (uintmax_t)app->log.lost);
	applog_deinit(&app->log);
}

int supervisor_new(const struct supervisor_input *in, struct loop *loop, struct timeline *timeline,
		   struct supervisor **ret, struct err *e)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	if (!s)
		return err_sys(e, -ENOMEM, "supervisor");
	s->in = in;
	s->loop = loop;
	s->timeline = timeline;
	s->signal_fd = -EBADF;
	s->target = machine_dial_target(&in->plan->vm);
	s->tty = TTY_INIT;
	s->n_apps = in->plan->n_apps;
	for (size_t i = 0; i < s->n_apps; i++) {
		s->apps[i].spec = &in->plan->apps[i];
		applog_init(&s->apps[i].log);
	}
	int r = watch_signals(s);
	if (r < 0) {
		supervisor_free(s);
		return err_sys(e, r, "supervisor: signals");
	}
	r = in->detach ? open_logs(s, e) : 0;
	if (r < 0) {
		supervisor_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int supervisor_run(struct supervisor *s, struct machine *machine, int *ret_status, struct err *e)
{
	s->machine = machine;
	if (s->in->interactive && tty_make_raw(&s->tty, STDIN_FILENO) < 0)
		s->tty = TTY_INIT; /* input is no terminal: the app still gets one */
	arm(s, &s->limit, (int64_t)s->in->boot_timeout_s * 1000, on_boot_limit);
	dial_agent(s);
	int r = loop_run(s->loop);
	tty_restore(&s->tty);
	if (s->failure.code < 0) {
		*e = s->failure;
		return s->failure.code;
	}
	if (r < 0)
		return err_sys(e, r, "supervisor: event loop");
	*ret_status = s->status;
	return 0;
}

void supervisor_free(struct supervisor *s)
{
	if (!s)
		return;
	tty_restore(&s->tty);
	loop_timer_disarm(&s->retry);
	loop_timer_disarm(&s->limit);
	loop_timer_disarm(&s->doubt);
	dial_stop(&s->dial);
	control_close(&s->control);
	for (size_t i = 0; i < s->n_apps; i++) {
		for (size_t k = 0; k < s->apps[i].n_streams; k++)
			stream_close(&s->apps[i].streams[k]);
		close_log(&s->apps[i]);
	}
	loop_watch_remove(&s->signal_watch);
	s->signal_fd = fd_close(s->signal_fd);
	free(s);
}

void supervisor_freep(struct supervisor **s)
{
	supervisor_free(*s);
}
