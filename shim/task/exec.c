/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further processes of a container (Exec). Each is asked for first, and started later, by a child
 * that becomes stage1's enter, carries its streams, and tells of its beginning and end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "shim/task/task_int.h"

struct exec {
	struct exec *next;
	struct process process;
	char *id; /* owned */
	struct oci_spec spec;
	uint64_t token;         /* of the request Start, while the process starts */
	uint64_t early_signals; /* that came meanwhile: bit N - 1 */
};

static struct exec *exec_of(const struct process *p)
{
	struct exec *x = p->container->execs;
	while (&x->process != p)
		x = x->next;
	return x;
}

struct process *container_find_process(struct container *c, const char *exec_id)
{
	struct exec *x = c->execs;
	if (!*exec_id)
		return &c->init;
	while (x && strcmp(x->id, exec_id) != 0)
		x = x->next;
	return x ? &x->process : NULL;
}

void container_each_exec(struct container *c, void (*fn)(struct process *p, void *ctx), void *ctx)
{
	for (struct exec *x = c->execs; x; x = x->next)
		fn(&x->process, ctx);
}

static void free_exec(struct exec *x)
{
	if (!x)
		return;
	process_deinit(&x->process);
	oci_spec_deinit(&x->spec);
	free(x->id);
	free(x);
}

void exec_forget(struct process *p)
{
	struct exec *x = exec_of(p), **at = &p->container->execs;
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	free_exec(x);
}

/* ---- Exec ---- */

static int check_request(struct container *c, const Task__ExecRequest *q, struct err *e)
{
	size_t n = 0;
	if (container_need_app(c, e) < 0)
		return e->code;
	if (!*q->exec_id)
		return err_set(e, -EINVAL, "a further process needs an ID");
	if (container_find_process(c, q->exec_id))
		return err_set(e, -EEXIST, "the container has a process of this ID");
	for (const struct exec *x = c->execs; x; x = x->next)
		n++;
	if (n >= CONTAINER_EXECS_MAX)
		return err_set(e, -EBUSY, "the container has %zu further processes already", n);
	if (c->init.status != PROCESS_RUNNING || c->init.has_ended)
		return err_set(e, -EBUSY, "the container %s",
			       c->init.status == PROCESS_PAUSED ? "is paused" : "does not run");
	return q->spec ? 0 : err_set(e, -EINVAL, "there is no specification of the process");
}

static int fill_exec(struct exec *x, struct container *c, const Task__ExecRequest *q, struct err *e)
{
	int r = oci_process_parse((const char *)q->spec->value.data, q->spec->value.len, &c->spec,
				  &x->spec, e);
	if (r < 0)
		return r;
	r = process_init(&x->process, q->stdin, q->stdout, q->stderr, q->terminal);
	x->id = strdup(q->exec_id);
	if (r < 0 || !x->id)
		return err_set(e, -ENOMEM, "out of memory");
	x->process.container = c;
	x->process.exec_id = x->id;
	x->process.rows = x->spec.rows;
	x->process.columns = x->spec.columns;
	return 0;
}

static int add_exec(struct container *c, const Task__ExecRequest *q, struct err *e)
{
	struct exec *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, -ENOMEM, "out of memory");
	oci_spec_init(&x->spec);
	int r = fill_exec(x, c, q, e);
	if (r < 0) {
		free_exec(x);
		return r;
	}
	x->next = c->execs;
	c->execs = x;
	return 0;
}

static void publish_added(struct shim *s, const Task__ExecRequest *q)
{
	Task__TaskExecAdded m;
	task__task_exec_added__init(&m);
	m.container_id = q->id;
	m.exec_id = q->exec_id;
	publisher_publish(s->publisher, "/tasks/exec-added", "containerd.events.TaskExecAdded",
			  &m.base);
}

void shim_exec(struct shim *s, uint64_t token, const void *request)
{
	const Task__ExecRequest *q = request;
	struct err e = ERR_INIT;
	struct container *c = shim_find_made(s, q->id);
	int r = c ? check_request(c, q, &e) : err_set(&e, -ENOENT, "there is no such container");
	if (r == 0)
		r = add_exec(c, q, &e);
	if (r < 0) {
		shim_refuse(s, token, &e);
		return;
	}
	publish_added(s, q);
	shim_answer_empty(s, token);
}

/* ---- Start ---- */

static int job_exec(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct carrier *k = ctx;
	const struct container *c = k->process->container;
	const struct exec *x = exec_of(k->process);
	(void)text;
	int streams = process_take_streams(k->process, e);
	/* Ours is containerd's log, into which no guest writes. */
	cleanup_fd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (streams >= 0 && !(streams & 1 << STDERR_FILENO) &&
	    (null < 0 || dup2(null, STDERR_FILENO) < 0))
		streams = err_sys(e, -errno, "/dev/null");
	return streams < 0 ? streams
			   : husk_exec(&c->shim->place, c->shim->uuid, c->app, &x->spec,
				       k->process->terminal, k->control_fd, e);
}

/* It has been asked for, and has neither begun nor failed. */
static bool is_starting(const struct process *p)
{
	return p->status == PROCESS_CREATED && p->was_started;
}

static void fail_start(struct process *p, const char *why, uint32_t exit_status)
{
	ttrpc_server_refuse(p->container->shim->server, exec_of(p)->token, TTRPC_UNKNOWN,
			    *why ? why : "the process could not be started");
	process_never_ran(p, exit_status);
}

/* Those that have come early are sent in the order of their numbers. */
static void send_early_signals(struct exec *x)
{
	for (int number = 1; number <= AGENT_SIGNAL_MAX; number++)
		if (x->early_signals >> (number - 1) & 1)
			control_signal(&x->process.control, number);
	x->early_signals = 0;
}

static void on_started(void *ctx)
{
	struct process *p = ctx;
	struct shim *s = p->container->shim;
	Task__TaskExecStarted event;
	Task__StartResponse m;
	if (!is_starting(p))
		return;
	task__task_exec_started__init(&event);
	task__start_response__init(&m);
	event.container_id = p->container->id;
	event.exec_id = exec_of(p)->id;
	event.pid = m.pid = (uint32_t)p->pid;
	p->status = PROCESS_RUNNING;
	publisher_publish(s->publisher, "/tasks/exec-started", "containerd.events.TaskExecStarted",
			  &event.base);
	answer_with(s->server, exec_of(p)->token, &m.base);
	send_early_signals(exec_of(p));
}

/* The end of one that nobody can ask any more. */
static uint32_t lost_status(const struct process *p)
{
	return p->was_killed || p->container->init.has_ended ? PROCESS_KILLED : PROCESS_LOST;
}

/*
 * One that runs has an end, or a message why nobody knows it; behind the end there may be one more,
 * why not all of its output came.
 */
static void on_exited(void *ctx, const struct agent_exec_exited *m)
{
	struct process *p = ctx;
	if (is_starting(p)) {
		fail_start(p, m->message, PROCESS_NOT_STARTED);
		return;
	}
	if (*m->message)
		fprintf(stderr, "husk: container \"%s\": %s\n", p->container->id, m->message);
	if (!p->has_ended && p->status == PROCESS_RUNNING)
		process_ended(p,
			      *m->message ? lost_status(p)
			      : m->signal ? 128 + (uint32_t)m->signal
					  : (uint32_t)m->code,
			      clock_realtime_ns());
}

static const struct control_ops control_ops = { .started = on_started, .exited = on_exited };

static void on_carrier_end(void *ctx, const struct job_end *end)
{
	struct process *p = ctx;
	p->streams = NULL;
	control_listen(&p->control); /* what it has said last */
	if (is_starting(p))
		fail_start(p, end->result < 0 ? end->e->text : "", PROCESS_NOT_STARTED);
	else if (p->status == PROCESS_RUNNING && !p->has_ended)
		process_ended(p, lost_status(p), clock_realtime_ns());
	process_streams_ended(p);
}

void exec_start(struct process *p, uint64_t token)
{
	struct exec *x = exec_of(p);
	struct container *c = p->container;
	struct err e = ERR_INIT;
	if (p->status != PROCESS_CREATED || p->was_started) {
		shim_refuse_text(c->shim, token, -EBUSY, "the process was started before");
		return;
	}
	if (c->init.status != PROCESS_RUNNING || c->init.has_ended) {
		shim_refuse_text(c->shim, token, -EBUSY, "the container does not run");
		return;
	}
	x->token = token;
	p->was_started = true;
	int r = process_open_streams(p, &e);
	if (r == 0)
		r = process_carry(p, job_exec, on_carrier_end, &control_ops, &e);
	if (r < 0) {
		fail_start(p, e.text, PROCESS_NOT_STARTED);
		return;
	}
	input_hold(&p->stdio.input);
	if (p->input_ended)
		input_end(&p->stdio.input);
	p->pid = job_pid(p->streams);
	process_resize(p);
}

/* ---- signals, the end ---- */

/* One that is starting can be killed, too: with what carries its streams it is gone. */
void exec_signal(struct process *p, int number)
{
	if (is_starting(p) && number == SIGKILL) {
		fail_start(p, "the process was killed", PROCESS_KILLED);
	} else if (is_starting(p)) {
		exec_of(p)->early_signals |= UINT64_C(1) << (number - 1);
	} else {
		control_signal(&p->control, number);
		if (number == SIGKILL && !p->was_killed)
			process_expect_end(p);
		p->was_killed |= number == SIGKILL;
	}
}

void container_forget_execs(struct container *c)
{
	while (c->execs) {
		struct process *p = &c->execs->process;
		if (is_starting(p))
			fail_start(p, "the container is gone", PROCESS_KILLED);
		else if (p->status != PROCESS_STOPPED)
			process_never_ran(p, p->has_ended ? p->exit_status : PROCESS_KILLED);
		exec_forget(p);
	}
}
