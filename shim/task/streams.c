/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a container's app, and its end, which is told when its output is out. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "shim/task/task_int.h"

/* Output that nobody takes does not keep an end from being told for longer. */
#define REST_MS 10000

static void publish_end(struct container *c)
{
	Task__Timestamp at = proto_timestamp(c->exited_ns);
	Task__TaskExit m;
	task__task_exit__init(&m);
	m.container_id = m.id = c->id;
	m.pid = (uint32_t)c->init.pid;
	m.exit_status = c->exit_status;
	m.exited_at = &at;
	process_end(&c->init, c->shim->server, c->exit_status, c->exited_ns);
	publisher_publish(c->shim->publisher, "/tasks/exit", "containerd.events.TaskExit", &m.base);
}

void container_may_tell(struct container *c)
{
	bool is_made = !c->request;
	bool starts = c->init.status == PROCESS_CREATED && c->was_started;
	if (c->has_ended && !c->streams && is_made && !starts && c->init.status != PROCESS_STOPPED)
		publish_end(c);
}

/* Who reads its output sees the end of it at once: there is none. */
static void end_streams(struct container *c)
{
	job_free(c->streams);
	c->streams = NULL;
	loop_timer_disarm(&c->rest);
	stdio_close(&c->stdio);
}

void container_never_ran(struct container *c, uint32_t exit_status)
{
	end_streams(c);
	if (!c->has_ended) {
		c->has_ended = true;
		c->exit_status = exit_status;
		c->exited_ns = clock_realtime_ns();
	}
	publish_end(c);
}

static void on_streams_end(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	if (end->result < 0)
		fprintf(stderr, "husk: container \"%s\": %s\n", c->id, end->e->text);
	c->lost_streams = c->init.status == PROCESS_CREATED;
	c->streams = NULL;
	loop_timer_disarm(&c->rest);
	stdio_close(&c->stdio);
	container_may_tell(c);
}

static void on_rest(void *ctx)
{
	const struct container *c = ctx;
	if (c->streams)
		job_kill(c->streams, SIGKILL);
}

void container_ended(struct container *c, uint32_t exit_status, int64_t exited_ns)
{
	if (c->has_ended)
		return;
	c->has_ended = true;
	c->exit_status = exit_status;
	c->exited_ns = exited_ns;
	if (c->streams)
		loop_timer_arm(c->shim->loop, &c->rest, clock_monotonic_ns() + REST_MS * NS_PER_MS,
			       on_rest, c);
	container_may_tell(c);
}

/* In a child: descriptors 0 to 2 become the streams that there are. */
static int job_attach(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	unsigned int streams = 0;
	(void)text;
	for (int i = 0; i < STDIO_COUNT; i++) {
		if (c->stdio.fds[i] < 0)
			continue;
		if (dup2(c->stdio.fds[i], i) < 0)
			return err_sys(e, -errno, "streams");
		streams |= 1U << i;
	}
	return husk_attach_app(&c->shim->place, c->shim->uuid, c->app, streams, e);
}

int container_attach(struct container *c, struct err *e)
{
	bool any = false;
	for (int i = 0; i < STDIO_COUNT; i++)
		any |= c->stdio.fds[i] >= 0;
	if (!any)
		return 0;
	int r = job_start(c->shim->loop, job_attach, c, JOB_BOUND | JOB_EXECUTES, on_streams_end, c,
			  &c->streams);
	if (r < 0)
		return err_sys(e, r, "cannot create a process");
	stdio_hand_over(&c->stdio);
	return 0;
}
