/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. One event loop; nothing in it blocks. A pod goes through these states:
 *
 *   BOOT  The backend has started the pod, the agent has not answered yet. The supervisor waits for
 *         the network of a pod that starts beside it, then dials;
 *         every sign of life and a timer make it try again. Behind the hello, pod.setup and, for
 *         each app, app.add and app.start are sent in one go. Ends with the hello's reply, which
 *         comes first. Who asks for the end has the pod killed: there is nothing to end yet.
 *   RUN   Streams attach as the apps appear. app.exited notifications are recorded on disk. The
 *         boot time limit holds on until the declared apps have been started.
 *   STOP  pod.shutdown is sent: all apps have ended, or one failed, or somebody asked for it, maybe
 *         while apps are being added: then the agent refuses what it has not done yet. The
 *         streams go on. Ends when the agent has written everything and all output is out.
 *   DROP  Nothing is left to be saved: the backend drops the pod.
 *   GONE  Nothing of the pod runs; the loop returns.
 *
 * The end of the pod or a helper of it in any state but DROP, a broken agent connection before all
 * is written, a call that the agent refuses: each is a failure. The first failure is kept, the pod
 * is killed, and the caller prints the one line.
 */
#include "stage1/supervise/supervisor.h"

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
#include "stage1/agent/control.h"
#include "stage1/apps/apps.h"
#include "stage1/pod/disk_space.h"
#include "stage1/pod/podfiles.h"
#include "stage1/streams/tty.h"
#include "stage1/supervise/forwards.h"
#include "stage1/supervise/host_clock.h"
#include "stage1/supervise/request_server.h"

enum state {
	STATE_BOOT,
	STATE_RUN,
	STATE_STOP,
	STATE_DROP,
	STATE_GONE,
};

/* Calls to the agent that are about the pod; those about apps have the numbers below. */
enum call {
	CALL_HELLO = APPS_CALL_END,
	CALL_SETUP,
	CALL_SHUTDOWN,
	CALL_CLOCK,
	CALL_END,
};

_Static_assert((int)CALL_END <= CONTROL_CALLS_MAX, "call ids fit");

struct supervisor {
	const struct supervisor_input *in;
	struct loop *loop;
	struct timeline *timeline;
	enum state state;
	struct err failure;   /* the first one */
	struct err suspicion; /* what looks like a failure, until its cause shows */
	int status;           /* of the first app that failed */
	bool all_written;
	bool is_up;            /* the declared apps have been started */
	bool asked_to_stop;    /* by a signal */
	bool stops_on_request; /* that is what began the stop */
	int64_t stop_end;      /* asked_to_stop: when whoever does not read loses what is left */
	uint64_t progress;     /* of all output, when the limit for it was armed */
	bool clock_is_old;     /* it has jumped again since the agent was told */
	int n_drains;          /* limits that passed with progress, and no reader held it up */
	struct dial dial;
	struct control control;
	struct loop_timer retry, limit, doubt; /* to dial, of the state, of a suspicion */
	int signal_fd;
	struct loop_watch signal_watch, network_watch;
	struct tty tty;
	struct disk_space room;
	struct host_clock clock;
	struct apps *apps;
	struct request_server *requests; /* of a pod that is ready */
	struct forwards *forwards;       /* NULL: nobody connects to its ports through us */
};

static void supervisor_fail(struct supervisor *s, const struct err *why)
{
	if (s->failure.code == 0)
		s->failure = *why;
	if (s->state == STATE_BOOT)
		network_cancel(s->in->network); /* a pod may wait for it */
	s->in->backend->kill(s->in->pod);
}

static void fail_sys(struct supervisor *s, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "%s", what);
	supervisor_fail(s, &e);
}

static void supervisor_arm(struct supervisor *s, struct loop_timer *t, int64_t ms, loop_timer_fn fn)
{
	loop_timer_arm(s->loop, t, clock_monotonic_ns() + ms * NS_PER_MS, fn, s);
}

static void on_doubt_limit(void *ctx)
{
	struct supervisor *s = ctx;
	supervisor_fail(s, &s->suspicion);
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
	supervisor_arm(s, &s->doubt, SUSPICION_MS, on_doubt_limit);
}

/* What leads to the agent is not there: its helper may have ended, or the whole pod. */
static void suspect_dial(struct supervisor *s, int code)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "agent: cannot dial it");
	suspect(s, &e);
}

/* ---- the way down ---- */

static bool is_ended_on_request(const struct supervisor *s)
{
	return s->state == STATE_STOP && s->stops_on_request;
}

/*
 * Whoever asks for the end of a pod that starts gets it in good order as soon as there is an agent;
 * but apps that did not run have not succeeded.
 */
static void drop_pod(struct supervisor *s)
{
	if (is_ended_on_request(s) && !s->is_up && s->failure.code == 0)
		err_set(&s->failure, -EINTR, "pod ended on request before its apps ran");
	s->state = STATE_DROP;
	control_close(&s->control);
	loop_timer_disarm(&s->limit);
	s->in->backend->drop(s->in->pod);
}

/* Streams of husk attach and husk app exec are not ours: nobody tells us how far they are. */
static bool others_may_read(const struct supervisor *s)
{
	const struct pod_plan *plan = s->in->plan;
	for (size_t i = 0; i < plan->n_apps; i++)
		if (stream_modes_can_attach(&plan->streams[i]))
			return true;
	return plan->is_mutable;
}

static void supervisor_drain(struct supervisor *s);

/*
 * A reader that does not read is within its rights: a pipe waits for ever, unless somebody asked
 * for the end. But the agent has ended all processes, so that what it still sends soon comes to
 * an end, unless it lies.
 */
static void on_drain_limit(void *ctx)
{
	struct supervisor *s = ctx;
	bool is_stalled = apps_any_stream(s->apps, stream_is_stalled);
	if (is_stalled && s->asked_to_stop && clock_monotonic_ns() >= s->stop_end) {
		drop_pod(s);
		return;
	}
	bool flows = apps_output_progress(s->apps) != s->progress;
	if (flows && !is_stalled)
		s->n_drains++;
	if (is_stalled || (flows && s->n_drains < DRAINS_MAX)) {
		supervisor_drain(s);
		return;
	}
	if (s->suspicion.code == 0)
		err_set(&s->suspicion, -ETIMEDOUT,
			"agent: the output of the apps did not end with the pod; "
			"some may be lost");
	drop_pod(s);
}

static void supervisor_drain(struct supervisor *s)
{
	int64_t now = clock_monotonic_ns(), limit = now + DRAIN_LIMIT_MS * NS_PER_MS;
	s->progress = apps_output_progress(s->apps);
	if (s->asked_to_stop)
		limit = MIN(limit, MAX(s->stop_end, now + NS_PER_MS));
	loop_timer_arm(s->loop, &s->limit, limit, on_drain_limit, s);
}

static void quit_if_done(struct supervisor *s)
{
	if (s->state != STATE_STOP || !s->all_written)
		return;
	if (apps_any_stream(s->apps, stream_is_pending)) {
		supervisor_drain(s);
		return;
	}
	timeline_reach(s->timeline, MARK_APP_OUTPUT);
	drop_pod(s);
}

static void on_stop_limit(void *ctx)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	err_set(&e, -ETIMEDOUT, "the agent did not end the pod within %jd s; the pod was killed",
		(intmax_t)(STOP_GRACE_MS + STOP_LIMIT_MS) / 1000);
	supervisor_fail(s, &e);
}

static void begin_stop(struct supervisor *s)
{
	if (s->state != STATE_RUN)
		return;
	s->state = STATE_STOP;
	s->stops_on_request = s->asked_to_stop;
	struct err why = ERR_INIT;
	err_set(&why, -ESHUTDOWN, "the pod is shutting down");
	apps_abort(s->apps, &why);
	const int64_t drain_ms = others_may_read(s) ? OTHERS_DRAIN_MS : 0;
	const struct agent_pod_shutdown m = { .grace_ms = STOP_GRACE_MS, .drain_ms = drain_ms };
	struct json_object *body = NULL;
	int r = agent_pod_shutdown_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_SHUTDOWN, AGENT_POD_SHUTDOWN, body);
	if (r < 0)
		fail_sys(s, r, "agent: cannot ask for shutdown");
	else
		supervisor_arm(s, &s->limit, STOP_GRACE_MS + STOP_LIMIT_MS, on_stop_limit);
}

/* ---- calls ---- */

static void on_started(void *ctx);

static int add_names(const struct supervisor *s, struct agent_pod_setup *m, struct err *e)
{
	const struct network *n = s->in->network;
	enum names_reach reach = s->in->is_host_net     ? NAMES_REACH_ALL
				 : network_has_world(n) ? NAMES_REACH_OTHERS
							: NAMES_REACH_NONE;
	int r = names_resolv_conf(s->in->names, &n->dns, reach, &m->resolv_conf, e);
	return r == 0 ? names_hosts(s->in->names, s->in->hostname, &m->hosts, e) : r;
}

/* What the pod's agent makes of the network depends on who has made the interfaces. */
static int fill_setup(const struct supervisor *s, struct agent_pod_setup *m, struct err *e)
{
	const struct agent_pod_setup *plan = &s->in->plan->setup;
	m->scratch_lun = plan->scratch_lun;
	m->clock_ns = clock_realtime_ns();
	int r = str_copy(m->hostname, sizeof(m->hostname), s->in->hostname);
	if (r < 0)
		return err_sys(e, r, "host name");
	r = strv_extend(&m->sysctls, s->in->sysctls);
	if (r < 0)
		return err_sys(e, r, "sysctls");
	r = add_names(s, m, e);
	if (r == 0 && !s->in->backend->in_netns)
		m->net = TAKE_PTR(s->in->network->net);
	return r;
}

static int send_setup(struct supervisor *s, struct err *e)
{
	CLEANUP(agent_pod_setup_deinit) struct agent_pod_setup m;
	struct json_object *body = NULL;
	agent_pod_setup_init(&m);
	int r = fill_setup(s, &m, e);
	if (r < 0)
		return r;
	r = agent_pod_setup_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_SETUP, AGENT_POD_SETUP, body);
	return r < 0 ? err_sys(e, r, "agent: cannot send it the pod") : 0;
}

/*
 * Everything at once, behind the hello: the agent works through it in order, without a round trip
 * in between. If it refuses the hello, it refuses the rest, and the hello's reply comes first.
 */
_Static_assert(AGENT_VERSION_MIN == AGENT_VERSION_MAX,
	       "with a choice of versions, wait for the hello's reply before sending more");

static int send_pod(struct supervisor *s, struct err *e)
{
	int r = send_setup(s, e);
	if (r < 0)
		return r;
	r = apps_boot(s->apps);
	return r < 0 ? err_sys(e, r, "agent: cannot send it the pod") : 0;
}

static void begin_to_forward(struct supervisor *s)
{
	int listener = s->in->network->listener;
	int r = listener < 0 ? 0
			     : forwards_new(s->loop, listener, s->in->backend->route, s->in->secret,
					    &s->forwards);
	if (r < 0)
		fail_sys(s, r, "network: what connects to the pod's ports");
}

/* The agent is there: time to attach to the streams and to obey. */
static void enter_run(struct supervisor *s)
{
	s->state = STATE_RUN;
	timeline_reach(s->timeline, MARK_AGENT);
	apps_open_streams(s->apps);
	begin_to_forward(s);
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
		fail_sys(s, r, "agent: its hello is not understood");
	else
		enter_run(s);
}

static void supervisor_refuse(struct supervisor *s, enum call call, const struct rpc_msg *msg)
{
	static const char *const names[] = { AGENT_HELLO, AGENT_POD_SETUP, AGENT_POD_SHUTDOWN,
					     AGENT_POD_CLOCK };
	struct err e = ERR_INIT;
	if (is_ended_on_request(s) && call != CALL_SHUTDOWN)
		return; /* it was under way, and the agent has given it up */
	err_set(&e, -EPROTO, "agent: %s: %s", names[call - CALL_HELLO], msg->text);
	supervisor_fail(s, &e);
}

/* The pod's time of day may be another one than the host's: the one or the other has jumped. */
static void send_clock(void *ctx)
{
	struct supervisor *s = ctx;
	const struct agent_pod_clock m = { .clock_ns = clock_realtime_ns() };
	struct json_object *body = NULL;
	if (s->state != STATE_RUN)
		return; /* pod.setup is still to come, or the pod ends */
	int r = agent_pod_clock_encode(&m, &body);
	if (r == 0)
		r = control_call(&s->control, CALL_CLOCK, AGENT_POD_CLOCK, body);
	s->clock_is_old = r == -EBUSY;
	if (r < 0 && r != -EBUSY)
		fail_sys(s, r, "agent: cannot tell it the time");
}

/* Nothing is answered before the hello, and no app added before the pod is set up. */
static bool is_premature(const struct supervisor *s, int id, const struct rpc_msg *msg)
{
	if (s->state == STATE_BOOT)
		return id != CALL_HELLO;
	return id < APPS_CALL_END && msg->kind == RPC_RESULT && s->control.outstanding[CALL_SETUP];
}

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct supervisor *s = ctx;
	if (is_premature(s, id, msg)) {
		fail_sys(s, -EPROTO, "agent: answers a call before the one that it depends on");
		return;
	}
	if (id < APPS_CALL_END) {
		apps_take_reply(s->apps, id, msg);
		return;
	}
	if (msg->kind == RPC_ERROR) {
		supervisor_refuse(s, (enum call)id, msg);
		return;
	}
	switch ((enum call)id) {
	case CALL_HELLO:
		on_hello(s, msg);
		return;
	case CALL_SETUP:
		if (s->in->plan->n_apps == 0)
			on_started(s);
		return;
	case CALL_SHUTDOWN:
		timeline_reach(s->timeline, MARK_WRITTEN);
		s->all_written = true;
		quit_if_done(s);
		return;
	case CALL_CLOCK:
		if (s->clock_is_old)
			send_clock(s);
		return;
	case CALL_END:
		return;
	}
}

/* ---- apps ---- */

static void on_request(void *ctx, const struct app_request *q, uint64_t token)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	int r;
	if (s->state != STATE_RUN)
		r = err_set(&e, -ESHUTDOWN, "the pod is shutting down");
	else
		r = apps_request(s->apps, q, token, &e);
	if (r != APPS_PENDING)
		request_server_reply(s->requests, token, r < 0 ? &e : NULL);
}

static void on_requester_gone(void *ctx, uint64_t token)
{
	struct supervisor *s = ctx;
	apps_forget(s->apps, token);
}

static const struct request_server_ops request_server_ops = {
	.request = on_request,
	.gone = on_requester_gone,
};

static void on_request_done(void *ctx, uint64_t token, const struct err *why)
{
	struct supervisor *s = ctx;
	request_server_reply(s->requests, token, why);
}

/* The declared apps run: from here on the pod does not end with whoever started it. */
static void on_started(void *ctx)
{
	struct supervisor *s = ctx;
	s->is_up = true;
	if (s->state != STATE_RUN && s->status != 0)
		return; /* the last of them could not be executed, and the pod ends by it */
	if (s->state == STATE_RUN)
		loop_timer_disarm(&s->limit);
	if (s->in->detach)
		prctl(PR_SET_PDEATHSIG, 0);
	int r = request_server_new(s->loop, &request_server_ops, s, &s->requests);
	if (r < 0) {
		fail_sys(s, r, "pod directory: cannot listen on \"" POD_FILE_CONTROL "\"");
		return;
	}
	r = podfiles_note_ready(s->in->pod_fd);
	if (r < 0) { /* somebody waits for it */
		fail_sys(s, r, "pod directory: cannot write \"" POD_FILE_READY "\"");
		return;
	}
	/* A host that cannot tell does not set its clock while pods run. */
	host_clock_watch(&s->clock, s->loop, send_clock, s);
	notify_send(s->in->notify, "READY=1"); /* a manager that does not listen is not a failure */
}

/* What was ended on request, or by the stop of the pod, has not failed. */
static void on_app_exited(void *ctx, int status, bool on_request)
{
	struct supervisor *s = ctx;
	enum pod_exit_policy policy = s->in->plan->exit_policy;
	bool failed = status != 0 && !on_request && s->state == STATE_RUN;
	bool all = apps_all_exited(s->apps);
	if (all)
		timeline_reach(s->timeline, MARK_APP_EXITED);
	if (policy == POD_EXIT_NEVER)
		return;
	if (failed && s->status == 0)
		s->status = status;
	if (failed && policy == POD_EXIT_ANY_FAILURE)
		apps_end_after_failure(s->apps);
	if (all || (failed && policy == POD_EXIT_ANY_FAILURE))
		begin_stop(s);
}

static void on_stream_ended(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	if (why && s->state == STATE_RUN) {
		suspect(s, why);
		return;
	}
	/*
	 * While a pod is stopped on request a stream may break at any stage. One whose apps have
	 * ended by themselves goes on to its end, where it is told that output was lost.
	 */
	if (why && !s->asked_to_stop && s->suspicion.code == 0)
		s->suspicion = *why;
	quit_if_done(s);
}

static void on_apps_failed(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	if (s->state != STATE_STOP) /* then the agent has given the start of apps up */
		supervisor_fail(s, why);
}

static const struct apps_ops apps_ops = {
	.started = on_started,
	.exited = on_app_exited,
	.stream_ended = on_stream_ended,
	.failed = on_apps_failed,
	.done = on_request_done,
};

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	struct supervisor *s = ctx;
	struct agent_app_exited m;
	if (strcmp(msg->method, AGENT_APP_EXITED) != 0)
		return; /* a newer agent may say more */
	if (agent_app_exited_decode(msg->body, &m) < 0)
		fail_sys(s, -EPROTO, "agent: its report of an app's end is not understood");
	else if (apps_take_exited(s->apps, &m) < 0)
		fail_sys(s, -EPROTO, "agent: reports the end of an app that does not run");
}

static void on_control_closed(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	if (!s->all_written)
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
		supervisor_arm(s, &s->retry, DIAL_RETRY_MS, on_retry);
		return;
	}
	struct err e = ERR_INIT;
	int r = control_open(&s->control, s->loop, fd, &control_ops, s);
	if (r == 0)
		r = control_hello(&s->control, CALL_HELLO, s->in->secret);
	if (r < 0)
		err_sys(&e, r, "agent: cannot send it the pod");
	else
		r = send_pod(s, &e);
	if (r == -EPIPE || r == -ECONNRESET) /* of a pod that ends before it is up */
		suspect(s, &e);
	else if (r < 0)
		supervisor_fail(s, &e);
}

static void dial_agent(struct supervisor *s)
{
	loop_timer_disarm(&s->retry);
	int r = dial_start(&s->dial, s->loop, s->in->backend->route, AGENT_PORT, on_dialed, s);
	if (r == -ECONNREFUSED)
		supervisor_arm(s, &s->retry, DIAL_RETRY_MS, on_retry);
	else if (r < 0)
		suspect_dial(s, r);
}

static void on_retry(void *ctx)
{
	struct supervisor *s = ctx;
	if (s->state == STATE_BOOT && !s->dial.loop && !s->control.loop &&
	    !network_is_awaited(s->in->network))
		dial_agent(s);
}

static void on_boot_limit(void *ctx)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	uintmax_t seconds = s->in->boot_timeout_s;
	if (s->state == STATE_BOOT)
		err_set(&e, -ETIMEDOUT,
			"the agent did not answer within %ju s; the pod's last line: \"%s\" (see %s "
			"in the pod directory, or raise --boot-timeout)",
			seconds, s->in->backend->last_words(s->in->pod), POD_FILE_CONSOLE);
	else
		err_set(&e, -ETIMEDOUT,
			"the agent did not start the apps within %ju s (see %s in the pod "
			"directory, or raise --boot-timeout)",
			seconds, POD_FILE_CONSOLE);
	supervisor_fail(s, &e);
}

static void begin_boot(struct supervisor *s)
{
	supervisor_arm(s, &s->limit, (int64_t)s->in->boot_timeout_s * 1000, on_boot_limit);
	dial_agent(s);
}

/* ---- the backend ---- */

static void on_reached(void *ctx, const char *name)
{
	struct supervisor *s = ctx;
	timeline_reach(s->timeline, name);
}

static void on_disk_error(void *ctx)
{
	struct supervisor *s = ctx;
	disk_space_note_error(&s->room);
}

/*
 * The pod goes on when whoever stopped it lets it. Until then nothing in it answers, and the limits
 * of its start and of its end run on.
 */
static void on_suspended(void *ctx, bool is)
{
	struct supervisor *s = ctx;
	podfiles_note_suspended(s->in->pod_fd, is);
	if (!is)
		send_clock(s);
}

static void on_ended(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	struct err network = ERR_INIT;
	timeline_reach(s->timeline, MARK_GONE);
	/* A pod that waited for its network ends without one; why there is none is known there. */
	if (s->state == STATE_BOOT)
		network_cancel(s->in->network);
	if (s->state == STATE_BOOT && network_receive(s->in->network, &network) < 0)
		why = &network;
	if (s->state != STATE_DROP && s->failure.code == 0)
		s->failure = *why;
	else if (s->failure.code == 0)
		s->failure = s->suspicion; /* ended in good order, and still a stream broke */
	s->state = STATE_GONE;
	loop_quit(s->loop);
}

/* It also ends when the pod does, whose end tells more. */
static void on_helper_ended(void *ctx, const struct err *why)
{
	struct supervisor *s = ctx;
	if (s->state == STATE_DROP || s->state == STATE_GONE)
		return;
	s->suspicion = ERR_INIT; /* this explains what broke before */
	suspect(s, why);
}

const struct backend_events supervisor_backend_events = {
	.spoke = on_retry,
	.reached = on_reached,
	.disk_error = on_disk_error,
	.suspended = on_suspended,
	.helper_ended = on_helper_ended,
	.ended = on_ended,
};

/* ---- the network ---- */

static void on_network_lost(void *ctx, uint32_t events)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	(void)events;
	loop_watch_remove(&s->network_watch);
	network_lost(s->in->network, &e);
	on_helper_ended(s, &e);
}

static int watch_network(struct supervisor *s, loop_watch_fn fn)
{
	int fd = s->in->network->socket;
	return fd < 0 ? 0 : loop_watch_add(s->loop, &s->network_watch, fd, EPOLLIN, fn, s);
}

/* Plugins have limits of their own. */
static void on_network(void *ctx, uint32_t events)
{
	struct supervisor *s = ctx;
	struct err e = ERR_INIT;
	(void)events;
	loop_watch_remove(&s->network_watch);
	timeline_reach(s->timeline, MARK_NETWORK);
	int r = network_receive(s->in->network, &e);
	if (r == 0 && (r = watch_network(s, on_network_lost)) < 0)
		err_sys(&e, r, "network");
	if (r < 0)
		supervisor_fail(s, &e);
	else
		begin_boot(s);
}

/* ---- signals ---- */

/*
 * A second interrupt from the keyboard means "now", SIGQUIT always does; any number of processes
 * may send SIGTERM. A pod that has not come up has nothing to end in good order.
 */
static void on_stop_signal(struct supervisor *s, uint32_t sig)
{
	if ((s->asked_to_stop && sig == SIGINT) || sig == SIGQUIT || s->state == STATE_BOOT) {
		struct err e = ERR_INIT;
		err_set(&e, -EINTR, "pod killed on request");
		supervisor_fail(s, &e);
		return;
	}
	if (s->state == STATE_STOP && s->all_written &&
	    apps_any_stream(s->apps, stream_is_stalled)) {
		drop_pod(s); /* all that is left is a reader that does not read */
		return;
	}
	if (!s->asked_to_stop)
		s->stop_end = clock_monotonic_ns() + STOP_GRACE_MS * NS_PER_MS;
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
	if (info.ssi_signo == SIGWINCH && s->state == STATE_RUN)
		apps_resize(s->apps);
	else if (info.ssi_signo != SIGWINCH)
		on_stop_signal(s, info.ssi_signo);
}

static int watch_signals(struct supervisor *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
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

static int new_apps(struct supervisor *s, struct err *e)
{
	const struct supervisor_input *in = s->in;
	const struct apps_config config = {
		.loop = s->loop,
		.timeline = s->timeline,
		.plan = in->plan,
		.secret = in->secret,
		.pod_fd = in->pod_fd,
		.backend = in->backend,
		.pod = in->pod,
		.confine = in->confine,
		.interactive = in->interactive,
		.only_log = in->detach,
		.control = &s->control,
	};
	return apps_new(&config, &apps_ops, s, &s->apps, e);
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
	s->network_watch = LOOP_WATCH_INIT;
	s->tty = TTY_INIT;
	s->clock = HOST_CLOCK_INIT;
	disk_space_init(&s->room, loop, in->pod_fd);
	int r = watch_signals(s);
	if (r < 0) {
		supervisor_free(s);
		return err_sys(e, r, "supervisor: signals");
	}
	r = new_apps(s, e);
	if (r < 0) {
		supervisor_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int supervisor_run(struct supervisor *s, int *ret_status, struct err *e)
{
	if (s->in->interactive && tty_make_raw(&s->tty, STDIN_FILENO) < 0)
		s->tty = TTY_INIT; /* it hangs up just now: end of file follows */
	bool is_awaited = network_is_awaited(s->in->network);
	int r = watch_network(s, is_awaited ? on_network : on_network_lost);
	if (!is_awaited)
		begin_boot(s);
	if (r == 0)
		r = loop_run(s->loop);
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
	loop_watch_remove(&s->network_watch);
	dial_stop(&s->dial);
	control_close(&s->control);
	request_server_free(s->requests);
	forwards_free(s->forwards);
	apps_free(s->apps);
	disk_space_deinit(&s->room);
	host_clock_deinit(&s->clock);
	loop_watch_remove(&s->signal_watch);
	s->signal_fd = fd_close(s->signal_fd);
	free(s);
}

void supervisor_freep(struct supervisor **s)
{
	supervisor_free(*s);
}
