/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals (Kill). Those for a container go one behind the other, each by a child, and wait while it
 * starts; a further process gets them by what carries its streams, when it runs.
 *
 * A guest that says nothing, or what is not so, must not keep anybody from ending its pod: one
 * whose container SIGKILL has not ended after a while is ended as a whole.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "shim/task/task_int.h"

/* Clients of containerd look for these words. */
#define FINISHED "process already finished"

/*
 * From SIGKILL to ending the pod. A kubelet waits for two minutes. An end takes its time if disks
 * of the pod are slow, and other containers go down with it, so this is not less.
 */
#define KILL_MS INT64_C(60000)

struct sending {
	struct sending *next;
	uint64_t token;
	int number;
	bool all;
};

/* ---- of a container ---- */

static void pop(struct container *c)
{
	struct sending *k = c->signals;
	c->signals = k->next;
	free(k);
}

static void end_sender(struct container *c)
{
	job_free(c->sender);
	c->sender = NULL;
}

void container_drop_signals(struct container *c)
{
	end_sender(c);
	loop_timer_disarm(&c->unended);
	job_free(c->ender);
	c->ender = NULL;
	while (c->signals) {
		shim_refuse_text(c->shim, c->signals->token, -ESRCH, FINISHED);
		pop(c);
	}
}

/* What is sent to a sandbox to end it ends the pod; nothing else means anything there. */
static int signal_sandbox(const struct container *c, int number, struct err *e)
{
	bool ends = number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGQUIT;
	return ends ? husk_stop_pod(&c->shim->place, c->shim->uuid, e) : 0;
}

static int job_signal(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	const struct sending *k = c->signals;
	(void)text;
	return c->spec.is_sandbox ? signal_sandbox(c, k->number, e)
				  : husk_signal_app(&c->shim->place, c->shim->uuid, c->app,
						    k->number, k->all, e);
}

static void on_sent(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	uint64_t token = c->signals->token;
	c->sender = NULL;
	pop(c);
	if (end->result < 0 && c->init.has_ended)
		shim_refuse_text(c->shim, token, -ESRCH, FINISHED);
	else if (end->result < 0)
		shim_refuse(c->shim, token, end->e);
	else
		shim_answer_empty(c->shim, token);
	if (c->spec.is_sandbox && c->shim->events) /* of a pod that ends the child has the lock */
		pod_events_look(c->shim->events);
	container_send_signals(c);
}

void container_send_signals(struct container *c)
{
	if (c->sender || c->ender || !c->signals || c->init.status == PROCESS_CREATED)
		return;
	if (c->init.has_ended) {
		container_drop_signals(c);
		return;
	}
	int r = job_start(c->shim->loop, job_signal, c, JOB_BOUND, on_sent, c, &c->sender);
	while (r < 0 && c->signals) {
		shim_refuse_text(c->shim, c->signals->token, -ENOMEM, "cannot create a process");
		pop(c);
	}
}

/* ---- one that SIGKILL does not end ---- */

static int job_end_pod(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_stop_pod(&c->shim->place, c->shim->uuid, e);
}

static void expect_end(struct container *c);

static void on_pod_ended(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->ender = NULL;
	if (end->result < 0) {
		fprintf(stderr, "husk: container \"%s\": %s\n", c->id, end->e->text);
		expect_end(c);
	}
	if (c->shim->events) /* the child has had the lock of the pod */
		pod_events_look(c->shim->events);
	container_send_signals(c);
}

static void on_no_end(void *ctx)
{
	struct container *c = ctx;
	if (c->init.has_ended)
		return;
	fprintf(stderr,
		"husk: container \"%s\" has not ended within %d s of SIGKILL: pod %s is ended\n",
		c->id, (int)(KILL_MS / 1000), c->shim->uuid);
	end_sender(c);
	if (job_start(c->shim->loop, job_end_pod, c, JOB_BOUND, on_pod_ended, c, &c->ender) < 0)
		expect_end(c);
}

/* From the first SIGKILL on: who asks again does not make it longer. */
static void expect_end(struct container *c)
{
	c->init.was_killed = true;
	if (!c->unended.loop && !c->ender && !c->spec.is_sandbox)
		loop_timer_arm(c->shim->loop, &c->unended,
			       clock_monotonic_ns() + KILL_MS * NS_PER_MS, on_no_end, c);
}

static void send_signal(struct container *c, uint64_t token, int number, bool all)
{
	/* One that cannot be caught goes first, whatever holds up those in front of it. */
	bool is_first = number == SIGKILL && c->signals && c->signals->number != SIGKILL;
	struct sending **at = &c->signals;
	size_t n = 0;
	for (; *at && !is_first; at = &(*at)->next)
		n++;
	struct sending *k = n < CONTAINER_SIGNALS_MAX ? calloc(1, sizeof(*k)) : NULL;
	if (!k) {
		shim_refuse_text(c->shim, token, -ENOMEM, "too many signals wait");
		return;
	}
	if (is_first)
		end_sender(c);
	if (number == SIGKILL)
		expect_end(c);
	*k = (struct sending){ .next = *at, .token = token, .number = number, .all = all };
	*at = k;
	container_send_signals(c);
}

/* ---- of any process ---- */

static void kill_process(struct process *p, uint64_t token, int number, bool all)
{
	struct shim *s = p->container->shim;
	if (p->status == PROCESS_CREATED && !p->was_started) {
		process_never_ran(p, PROCESS_KILLED);
		shim_answer_empty(s, token);
	} else if (!*p->exec_id) {
		send_signal(p->container, token, number, all);
	} else {
		exec_signal(p, number);
		shim_answer_empty(s, token);
	}
}

void shim_kill(struct shim *s, uint64_t token, const void *request)
{
	const Task__KillRequest *q = request;
	struct container *c = shim_find_made(s, q->id);
	struct process *p = c ? container_find_process(c, q->exec_id) : NULL;
	/*
	 * Who still wants to kill one that has ended waits for the end of its output, which is a
	 * guest's to give.
	 */
	if (p && p->has_ended && p->streams && q->signal == SIGKILL)
		job_kill(p->streams, SIGKILL);
	if (!p || p->status == PROCESS_STOPPED || p->has_ended)
		shim_refuse_text(s, token, -ESRCH, FINISHED);
	else if (q->signal == 0 || q->signal > AGENT_SIGNAL_MAX)
		shim_refuse_text(s, token, -EINVAL, "there is no such signal");
	else
		kill_process(p, token, (int)q->signal, q->all);
}
