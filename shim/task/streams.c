/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a process, and its end, which is told when its output is out. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "shim/task/task_int.h"

/*
 * Output that nobody takes does not keep an end from being told for longer; who takes it slowly
 * gets it all the same. Nor does a process that was killed keep its end to itself for longer,
 * whatever a guest says.
 */
#define REST_MS 10000

static void publish_end(struct process *p)
{
	struct shim *s = p->container->shim;
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__TaskExit m;
	task__task_exit__init(&m);
	m.container_id = p->container->id;
	m.id = *p->exec_id ? proto_text(p->exec_id) : p->container->id;
	m.pid = (uint32_t)p->pid;
	m.exit_status = p->exit_status;
	m.exited_at = &at;
	process_end(p, s->server, p->exit_status, p->exited_ns);
	publisher_publish(s->publisher, "/tasks/exit", "containerd.events.TaskExit", &m.base);
}

void process_may_tell(struct process *p)
{
	bool is_made = !p->container->request;
	bool starts = p->status == PROCESS_CREATED && p->was_started;
	bool is_out = !p->streams || p->waits_no_more;
	if (p->has_ended && is_out && is_made && !starts && p->status != PROCESS_STOPPED)
		publish_end(p);
}

static void let_go(struct process *p)
{
	loop_timer_disarm(&p->rest);
	stdio_close(&p->stdio);
	control_close(&p->control);
}

void process_never_ran(struct process *p, uint32_t exit_status)
{
	job_free(p->streams); /* who reads its output sees the end of it at once: there is none */
	p->streams = NULL;
	let_go(p);
	p->has_ended = true;
	p->exit_status = exit_status;
	p->exited_ns = clock_realtime_ns();
	/* Of a further process that nobody was told of, nobody is told that it has ended. */
	if (*p->exec_id && p->status == PROCESS_CREATED)
		process_end(p, p->container->shim->server, exit_status, p->exited_ns);
	else
		publish_end(p);
}

void process_streams_ended(struct process *p)
{
	p->streams = NULL;
	let_go(p);
	process_may_tell(p);
}

static void on_rest(void *ctx)
{
	struct process *p = ctx;
	if (!p->has_ended && p->streams)
		job_kill(p->streams, SIGKILL);
	p->waits_no_more = true;
	process_may_tell(p);
}

void process_expect_end(struct process *p)
{
	if (p->streams)
		loop_timer_arm(p->container->shim->loop, &p->rest,
			       clock_monotonic_ns() + REST_MS * NS_PER_MS, on_rest, p);
}

static void expect_end_of_exec(struct process *p, void *ctx)
{
	(void)ctx;
	if (!p->has_ended)
		process_expect_end(p);
}

void process_ended(struct process *p, uint32_t exit_status, int64_t exited_ns)
{
	if (p->has_ended)
		return;
	p->has_ended = true;
	p->exit_status = exit_status;
	p->exited_ns = exited_ns;
	process_expect_end(p);
	if (!*p->exec_id)
		container_each_exec(p->container, expect_end_of_exec, NULL);
	process_may_tell(p);
}

int process_open_streams(struct process *p, struct err *e)
{
	const struct container *c = p->container;
	const struct stdio_request q = {
		.loop = c->shim->loop,
		.paths = { p->paths[0], p->paths[1], p->paths[2] },
		.source = { *p->exec_id ? p->exec_id : c->id, c->shim->ns },
	};
	int r = stdio_open(&q, &p->stdio, e);
	if (r == 0 && p->terminal)
		input_hold(&p->stdio.input);
	return r;
}

int process_take_streams(const struct process *p, struct err *e)
{
	int streams = 0;
	for (int i = 0; i < STDIO_COUNT; i++) {
		if (p->stdio.fds[i] < 0)
			continue;
		if (dup2(p->stdio.fds[i], i) < 0)
			return err_sys(e, -errno, "streams");
		streams |= 1 << i;
	}
	return streams;
}

int process_carry(struct process *p, job_fn fn, job_done done, const struct control_ops *ops,
		  struct err *e)
{
	struct loop *loop = p->container->shim->loop;
	struct carrier k = { .process = p };
	int r = ops ? control_open(&p->control, loop, ops, p, &k.control_fd) : 0;
	if (r == 0)
		r = job_start(loop, fn, &k, JOB_BOUND | JOB_EXECUTES, done, p, &p->streams);
	if (k.control_fd > 0)
		fd_close(k.control_fd);
	if (r < 0)
		return err_sys(e, r, "cannot create a process");
	stdio_hand_over(&p->stdio);
	return 0;
}

void process_resize(struct process *p)
{
	if (p->terminal && (p->rows > 0 || p->columns > 0))
		control_resize(&p->control, p->rows, p->columns);
}

/* ---- of an app ---- */

static int job_attach(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct carrier *k = ctx;
	const struct container *c = k->process->container;
	(void)text;
	int streams = process_take_streams(k->process, e);
	return streams < 0 ? streams
			   : husk_attach_app(&c->shim->place, c->shim->uuid, c->app,
					     (unsigned int)streams, k->control_fd, e);
}

static void on_attached_end(void *ctx, const struct job_end *end)
{
	struct process *p = ctx;
	struct container *c = p->container;
	if (end->result < 0)
		fprintf(stderr, "husk: container \"%s\": %s\n", c->id, end->e->text);
	else if (end->exit_code == EXIT_HUSK_FAILURE) /* where it says so, nobody may read it */
		fprintf(stderr, "husk: container \"%s\": some of its output was lost\n", c->id);
	c->lost_streams = p->status == PROCESS_CREATED;
	process_streams_ended(p);
}

/* The app's beginning and end are told by the pod. */
static void on_told_started(void *ctx)
{
	(void)ctx;
}

static void on_told_exited(void *ctx, const struct agent_exec_exited *m)
{
	(void)ctx;
	(void)m;
}

static const struct control_ops ignored = { .started = on_told_started, .exited = on_told_exited };

int container_attach(struct container *c, struct err *e)
{
	struct process *p = &c->init;
	bool any = false;
	for (int i = 0; i < STDIO_COUNT; i++)
		any |= p->stdio.fds[i] >= 0;
	if (!any)
		return 0;
	int r = process_carry(p, job_attach, on_attached_end, p->terminal ? &ignored : NULL, e);
	if (r == 0)
		process_resize(p);
	return r;
}
