/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/pod/pod.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "shim/task/task_int.h"

#define SERVICE "containerd.task.v2.Task"

/* Clients of containerd look for these words. */
#define FINISHED "process already finished"

/* Exit statuses of what never ran: as shells have them. */
#define EXIT_KILLED      (128 + SIGKILL)
#define EXIT_NOT_STARTED 127

/* What a request that is about a process says. */
struct about {
	Task__ProcessRequest *m;
	struct container *c;
};

struct container *shim_find(struct shim *s, const char *id)
{
	struct container *c = s->containers;
	/* Of one that is being made the request says what it is called. */
	while (c && (!c->id || strcmp(c->id, id) != 0))
		c = c->next;
	return c;
}

void shim_forget(struct container *c)
{
	struct container **at = c ? &c->shim->containers : NULL;
	if (!c)
		return;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	job_free(c->job);
	job_free(c->streams);
	loop_timer_disarm(&c->rest);
	stdio_close(&c->stdio);
	oci_spec_deinit(&c->spec);
	process_deinit(&c->init);
	free(c->mounts);
	if (c->request)
		task__create_request__free_unpacked(c->request, &c->arena.allocator);
	free(c->id);
	free(c->bundle);
	free(c);
}

static enum ttrpc_code code_of(int r)
{
	switch (r) {
	case -ENOENT:
	case -ESRCH:
		return TTRPC_NOT_FOUND;
	case -EEXIST:
		return TTRPC_ALREADY_EXISTS;
	case -EBADMSG:
	case -EINVAL:
	case -E2BIG:
		return TTRPC_INVALID_ARGUMENT;
	case -EBUSY:
		return TTRPC_FAILED_PRECONDITION;
	case -EOPNOTSUPP:
		return TTRPC_UNIMPLEMENTED;
	case -ENOMEM:
		return TTRPC_RESOURCE_EXHAUSTED;
	default:
		return TTRPC_UNKNOWN;
	}
}

void shim_refuse(struct shim *s, uint64_t token, const struct err *e)
{
	ttrpc_server_refuse(s->server, token, code_of(e->code), e->text);
}

static void refuse(struct shim *s, uint64_t token, int r, const char *text)
{
	ttrpc_server_refuse(s->server, token, code_of(r), text);
}

static void answer_empty(struct shim *s, uint64_t token)
{
	ttrpc_server_answer(s->server, token, NULL, 0);
}

/*
 * Begins a job for the container and the request @token, which is refused if that fails. 0 or
 * -errno.
 */
static int container_begin(struct container *c, uint64_t token, job_fn fn, job_done done)
{
	struct shim *s = c->shim;
	if (c->job) {
		refuse(s, token, -EBUSY, "something else is being done with the container");
		return -EBUSY;
	}
	c->token = token;
	int r = job_start(s->loop, fn, c, JOB_BOUND, done, c, &c->job);
	if (r < 0)
		refuse(s, token, -ENOMEM, "cannot create a process");
	return r;
}

/* ---- Start ---- */

static int job_start_app(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_start_app(&c->shim->place, c->shim->uuid, c->app, e);
}

static void on_started(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	struct shim *s = c->shim;
	c->job = NULL;
	if (end->result < 0) {
		ttrpc_server_refuse(s->server, c->token, TTRPC_UNKNOWN, end->e->text);
		container_never_ran(c, EXIT_NOT_STARTED);
		return;
	}
	Task__TaskStart event;
	Task__StartResponse m;
	task__task_start__init(&event);
	task__start_response__init(&m);
	event.container_id = c->id;
	event.pid = m.pid = (uint32_t)c->init.pid;
	c->init.status = PROCESS_RUNNING;
	publisher_publish(s->publisher, "/tasks/start", "containerd.events.TaskStart", &event.base);
	answer_with(s->server, c->token, &m.base);
	container_may_tell(c); /* it may have been short */
}

static void call_start(struct shim *s, uint64_t token, const struct about *a)
{
	struct container *c = a->c;
	if (c->init.status != PROCESS_CREATED || c->was_started || c->has_ended)
		refuse(s, token, -EBUSY, "the container was started before, or has ended");
	else if (c->lost_streams)
		refuse(s, token, -EIO, "the streams of the container could not be joined");
	else
		c->was_started = container_begin(c, token, job_start_app, on_started) == 0;
}

/* ---- Delete ---- */

static int job_delete(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_end_pod(&c->shim->place, c->shim->uuid, e);
}

static void on_deleted(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	struct shim *s = c->shim;
	c->job = NULL;
	if (end->result < 0) {
		shim_refuse(s, c->token, end->e);
		return;
	}
	Task__Timestamp at = proto_timestamp(c->init.exited_ns);
	Task__TaskDelete event;
	Task__DeleteResponse m;
	task__task_delete__init(&event);
	task__delete_response__init(&m);
	event.container_id = event.id = c->id;
	event.pid = m.pid = (uint32_t)c->init.pid;
	event.exit_status = m.exit_status = c->init.exit_status;
	event.exited_at = m.exited_at = &at;
	publisher_publish(s->publisher, "/tasks/delete", "containerd.events.TaskDelete",
			  &event.base);
	answer_with(s->server, c->token, &m.base);
	shim_forget(c);
}

static void call_delete(struct shim *s, uint64_t token, const struct about *a)
{
	struct container *c = a->c;
	if (c->init.status == PROCESS_RUNNING) {
		refuse(s, token, -EBUSY, "the container runs");
		return;
	}
	if (container_begin(c, token, job_delete, on_deleted) == 0 &&
	    c->init.status == PROCESS_CREATED)
		container_never_ran(c, EXIT_KILLED);
}

/* ---- Kill ---- */

/* A signal on its way, for which the container is not needed: it may be gone before the answer. */
struct sending {
	struct shim *shim;
	uint64_t token;
	char app[AGENT_NAME_MAX + 1];
	int number;
};

static int job_signal(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct sending *k = ctx;
	(void)text;
	return husk_signal_app(&k->shim->place, k->shim->uuid, k->app, k->number, e);
}

static void on_sent(void *ctx, const struct job_end *end)
{
	cleanup_free struct sending *k = ctx;
	const struct container *c = shim_find_app(k->shim, k->app);
	if (end->result < 0 && (!c || c->has_ended))
		refuse(k->shim, k->token, -ESRCH, FINISHED);
	else if (end->result < 0)
		shim_refuse(k->shim, k->token, end->e);
	else
		answer_empty(k->shim, k->token);
}

static void send_signal(struct container *c, uint64_t token, int number)
{
	cleanup_free struct sending *k = calloc(1, sizeof(*k));
	if (!k) {
		refuse(c->shim, token, -ENOMEM, "out of memory");
		return;
	}
	*k = (struct sending){ .shim = c->shim, .token = token, .number = number };
	str_copy(k->app, sizeof(k->app), c->app);
	if (job_start(c->shim->loop, job_signal, k, JOB_BOUND, on_sent, k, NULL) < 0)
		refuse(c->shim, token, -ENOMEM, "cannot create a process");
	else
		TAKE_PTR(k);
}

static void shim_kill(struct shim *s, uint64_t token, const Task__KillRequest *q)
{
	struct container *c = shim_find(s, q->id);
	if (!c || c->request || *q->exec_id || c->init.status == PROCESS_STOPPED || c->has_ended)
		refuse(s, token, -ESRCH, FINISHED);
	else if (q->signal == 0 || q->signal > AGENT_SIGNAL_MAX)
		refuse(s, token, -EINVAL, "there is no such signal");
	else if (c->init.status == PROCESS_RUNNING)
		send_signal(c, token, (int)q->signal);
	else if (c->was_started)
		refuse(s, token, -EBUSY, "the container is being started");
	else {
		container_never_ran(c, EXIT_KILLED);
		answer_empty(s, token);
	}
}

static void call_kill(struct shim *s, uint64_t token, const struct ttrpc_request *q)
{
	struct proto_arena arena;
	proto_arena_init(&arena);
	Task__KillRequest *m = task__kill_request__unpack(&arena.allocator, q->len, q->payload);
	if (m)
		shim_kill(s, token, m);
	else
		refuse(s, token, -EBADMSG, "the request is not understood");
	task__kill_request__free_unpacked(m, &arena.allocator);
}

/* ---- what is answered at once ---- */

static void call_state(struct shim *s, uint64_t token, const struct about *a)
{
	struct process *p = &a->c->init;
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__StateResponse m;
	task__state_response__init(&m);
	m.id = a->c->id;
	m.bundle = a->c->bundle;
	m.pid = (uint32_t)p->pid;
	m.status = (int32_t)p->status;
	m.stdin = p->paths[0];
	m.stdout = p->paths[1];
	m.stderr = p->paths[2];
	m.terminal = p->terminal;
	m.exit_status = p->exit_status;
	m.exited_at = p->status == PROCESS_STOPPED ? &at : NULL;
	answer_with(s->server, token, &m.base);
}

static void call_wait(struct shim *s, uint64_t token, const struct about *a)
{
	process_wait(&a->c->init, s->server, token);
}

static void call_pids(struct shim *s, uint64_t token, const struct about *a)
{
	Task__ProcessInfo info;
	Task__ProcessInfo *list[] = { &info };
	Task__PidsResponse m;
	task__process_info__init(&info);
	task__pids_response__init(&m);
	info.pid = (uint32_t)a->c->init.pid;
	m.processes = list;
	m.n_processes = a->c->init.status == PROCESS_STOPPED ? 0 : 1;
	answer_with(s->server, token, &m.base);
}

static void call_connect(struct shim *s, uint64_t token, const struct about *a)
{
	static char version[] = HUSK_VERSION;
	Task__ConnectResponse m;
	task__connect_response__init(&m);
	m.shim_pid = (uint32_t)getpid();
	m.task_pid = a->c ? (uint32_t)a->c->init.pid : 0;
	m.version = version;
	answer_with(s->server, token, &m.base);
}

static void call_shutdown(struct shim *s, uint64_t token, const struct about *a)
{
	(void)a;
	answer_empty(s, token);
	if (!s->containers)
		s->asked_to_end = true;
}

static void call_close_io(struct shim *s, uint64_t token, const struct about *a)
{
	input_end(&a->c->stdio.input);
	answer_empty(s, token);
}

/* ---- dispatch ---- */

typedef void (*call_fn)(struct shim *s, uint64_t token, const struct about *a);

/*
 * The first two fields of all these requests are the same: a container, and a process of it. What
 * else they have is skipped as unknown.
 */
static const struct {
	const char *method;
	call_fn call;
	bool needs_none; /* a container need not be there */
} methods[] = {
	{ "CloseIO", call_close_io, false }, { "Connect", call_connect, true },
	{ "Delete", call_delete, false },    { "Pids", call_pids, false },
	{ "Shutdown", call_shutdown, true }, { "Start", call_start, false },
	{ "State", call_state, false },      { "Wait", call_wait, false },
};

static void call_about(struct shim *s, uint64_t token, const struct ttrpc_request *q, size_t which)
{
	struct proto_arena arena;
	proto_arena_init(&arena);
	struct about a = {
		.m = task__process_request__unpack(&arena.allocator, q->len, q->payload),
	};
	if (!a.m) {
		refuse(s, token, -EBADMSG, "the request is not understood");
		return;
	}
	a.c = shim_find(s, a.m->id);
	bool missing = !a.c || a.c->request || *a.m->exec_id;
	if (missing && !methods[which].needs_none)
		refuse(s, token, -ENOENT, "there is no such process");
	else
		methods[which].call(s, token, &a);
	task__process_request__free_unpacked(a.m, &arena.allocator);
}

static void on_request(void *ctx, uint64_t token, const struct ttrpc_request *q)
{
	struct shim *s = ctx;
	if (strcmp(q->service, SERVICE) != 0) {
		refuse(s, token, -EOPNOTSUPP, "this service is not known here");
		return;
	}
	if (strcmp(q->method, "Create") == 0) {
		shim_create(s, token, q);
		return;
	}
	if (strcmp(q->method, "Kill") == 0) {
		call_kill(s, token, q);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (strcmp(q->method, methods[i].method) != 0)
			continue;
		call_about(s, token, q, i);
		return;
	}
	refuse(s, token, -EOPNOTSUPP, "this method is not supported");
}

/* ---- the shim ---- */

int shim_new(const struct shim_setup *setup, struct shim **ret, struct err *e)
{
	cleanup_free struct shim *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	*s = (struct shim){
		.loop = setup->loop,
		.publisher = setup->publisher,
	};
	int r = ttrpc_server_new(setup->loop, setup->listen_fd, on_request, s, &s->server);
	if (r < 0)
		return err_sys(e, r, "cannot serve");
	*ret = TAKE_PTR(s);
	return 0;
}

int shim_turn(struct shim *s)
{
	s->loop->quit = false; /* a watcher that ends asks for that: the shim goes on */
	int r = loop_turn(s->loop);
	shim_look_at_watcher(s);
	return r;
}

bool shim_is_over(const struct shim *s)
{
	return s->asked_to_end && ttrpc_server_is_flushed(s->server) &&
	       publisher_is_idle(s->publisher);
}

void shim_free(struct shim *s)
{
	if (!s)
		return;
	while (s->containers)
		shim_forget(s->containers);
	pod_events_free(s->events);
	pods_free(s->pods);
	ttrpc_server_free(s->server);
	free(s);
}
