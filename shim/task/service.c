/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/pod/pod.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "shim/task/task_int.h"

#define SERVICE "containerd.task.v2.Task"

/* What a request that is about a process says. */
struct about {
	struct container *c; /* NULL: none is needed */
	struct process *p;   /* of that */
};

struct container *shim_find(struct shim *s, const char *id)
{
	struct container *c = s->containers;
	/* Of one that is being made the request says what it is called. */
	while (c && (!c->id || strcmp(c->id, id) != 0))
		c = c->next;
	return c;
}

struct container *shim_find_made(struct shim *s, const char *id)
{
	struct container *c = shim_find(s, id);
	return c && !c->request ? c : NULL;
}

/* Nobody knows of it any more but its job, if it has one. */
static void take_out(struct container *c)
{
	struct container **at = &c->shim->containers;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	container_drop_signals(c);
	container_drop_counting(c);
	container_forget_execs(c);
}

static void free_container(struct container *c)
{
	container_end_job(c);
	oci_spec_deinit(&c->spec);
	process_deinit(&c->init);
	free(c->mounts);
	if (c->request)
		task__create_request__free_unpacked(c->request, &c->arena.allocator);
	free(c->id);
	free(c->bundle);
	free(c);
}

void shim_forget(struct container *c)
{
	if (!c)
		return;
	take_out(c);
	free_container(c);
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

void shim_refuse_text(struct shim *s, uint64_t token, int r, const char *text)
{
	ttrpc_server_refuse(s->server, token, code_of(r), text);
}

void shim_answer_empty(struct shim *s, uint64_t token)
{
	ttrpc_server_answer(s->server, token, NULL, 0);
}

int container_begin(struct container *c, uint64_t token, job_fn fn, job_done done)
{
	struct shim *s = c->shim;
	if (c->job) {
		shim_refuse_text(s, token, -EBUSY,
				 "something else is being done with the container");
		return -EBUSY;
	}
	c->token = token;
	int r = job_start(s->loop, fn, c, JOB_BOUND, done, c, &c->job);
	if (r < 0)
		shim_refuse_text(s, token, -ENOMEM, "cannot create a process");
	return r;
}

void container_expect_guest(struct container *c, loop_timer_fn late)
{
	loop_timer_arm(c->shim->loop, &c->late, clock_monotonic_ns() + GUEST_MS * NS_PER_MS, late,
		       c);
}

void container_end_job(struct container *c)
{
	loop_timer_disarm(&c->late);
	job_free(c->job);
	c->job = NULL;
}

/* ---- Start ---- */

static int job_start_app(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_start_app(&c->shim->place, c->shim->uuid, c->app, e);
}

static void tell_started(struct container *c)
{
	struct shim *s = c->shim;
	Task__TaskStart event;
	Task__StartResponse m;
	task__task_start__init(&event);
	task__start_response__init(&m);
	event.container_id = c->id;
	event.pid = m.pid = (uint32_t)c->init.pid;
	c->init.status = PROCESS_RUNNING;
	input_hold(&c->init.stdio.input);
	publisher_publish(s->publisher, "/tasks/start", "containerd.events.TaskStart", &event.base);
	answer_with(s->server, c->token, &m.base);
	container_send_signals(c);
	process_may_tell(&c->init); /* it may have been short */
}

static void on_started(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	if (end->result == 0) {
		tell_started(c);
		return;
	}
	ttrpc_server_refuse(c->shim->server, c->token, TTRPC_UNKNOWN, end->e->text);
	process_never_ran(&c->init, PROCESS_NOT_STARTED);
	container_send_signals(c);
}

static void start_container(struct container *c, uint64_t token)
{
	if (!c->spec.is_sandbox) {
		c->init.was_started = container_begin(c, token, job_start_app, on_started) == 0;
		return;
	}
	c->init.was_started = true; /* the pod runs already */
	c->token = token;
	tell_started(c);
}

static void call_start(struct shim *s, uint64_t token, const struct about *a)
{
	struct container *c = a->c;
	struct process *p = a->p;
	if (*p->exec_id)
		exec_start(p, token);
	else if (p->status != PROCESS_CREATED || p->was_started || p->has_ended)
		shim_refuse_text(s, token, -EBUSY,
				 "the container was started before, or has ended");
	else if (c->lost_streams)
		shim_refuse_text(s, token, -EIO,
				 "the streams of the container could not be joined");
	else
		start_container(c, token);
}

/* ---- Delete ---- */

static void answer_deleted(struct shim *s, uint64_t token, const struct process *p)
{
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__DeleteResponse m;
	task__delete_response__init(&m);
	m.pid = (uint32_t)p->pid;
	m.exit_status = p->exit_status;
	m.exited_at = &at;
	answer_with(s->server, token, &m.base);
}

static void tell_deleted(struct container *c)
{
	struct shim *s = c->shim;
	const struct process *p = &c->init;
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__TaskDelete event;
	task__task_delete__init(&event);
	event.container_id = event.id = c->id;
	event.pid = (uint32_t)p->pid;
	event.exit_status = p->exit_status;
	event.exited_at = &at;
	container_is_removed(c);
	container_forget_execs(c);
	publisher_publish(s->publisher, "/tasks/delete", "containerd.events.TaskDelete",
			  &event.base);
	answer_deleted(s, c->token, p);
	s->pod_is_removed |= container_owns_pod(c);
}

/*
 * Who asked for the last Delete may not have waited for its end, and who asks again is told that
 * there is nothing: nobody knows of this shim then, until it goes.
 */
#define SHUTDOWN_MS INT64_C(60000)

static void on_no_shutdown(void *ctx)
{
	struct shim *s = ctx;
	s->asked_to_end |= !s->containers;
}

static void expect_shutdown(struct shim *s)
{
	if (s->pod_is_removed && !s->containers)
		loop_timer_arm(s->loop, &s->unasked, clock_monotonic_ns() + SHUTDOWN_MS * NS_PER_MS,
			       on_no_shutdown, s);
}

/* An app of which its guest does not let go keeps nobody from removing the rest. */
static void on_delete_late(void *ctx)
{
	struct container *c = ctx;
	tell_deleted(c);
	take_out(c);
	c->is_left = true;
	expect_shutdown(c->shim);
}

static void on_deleted(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	loop_timer_disarm(&c->late);
	c->is_deleted = false;
	if (end->result < 0 && container_owns_pod(c)) {
		shim_refuse(c->shim, c->token, end->e);
		return;
	}
	if (end->result < 0)
		fprintf(stderr, "husk: container \"%s\" is left in pod %s, and goes with it: %s\n",
			c->id, c->shim->uuid, end->e->text);
	if (c->is_left) {
		free_container(c);
		return;
	}
	struct shim *s = c->shim;
	tell_deleted(c);
	shim_forget(c);
	expect_shutdown(s);
}

/* What is being done with one that has ended does not hold up its removal. */
static void drop_job(struct container *c)
{
	if (!c->job)
		return;
	container_end_job(c);
	shim_refuse_text(c->shim, c->token, -ESRCH, "the container has ended");
}

static void call_delete(struct shim *s, uint64_t token, const struct about *a)
{
	struct container *c = a->c;
	struct process *p = a->p;
	bool never_ran = p->status == PROCESS_CREATED && !p->was_started;
	if (!never_ran && p->status != PROCESS_STOPPED)
		shim_refuse_text(s, token, -EBUSY, "the process runs");
	else if (*p->exec_id) {
		if (never_ran)
			process_never_ran(p, PROCESS_KILLED);
		answer_deleted(s, token, p);
		exec_forget(p);
	} else if (c->is_deleted) { /* slowly: who asked first has given up by now */
		shim_refuse_text(s, c->token, -EBUSY, "the container is being deleted for another");
		c->token = token;
	} else {
		drop_job(c);
		if (container_begin(c, token, container_remove, on_deleted) < 0)
			return;
		c->is_deleted = true;
		if (!container_owns_pod(c))
			container_expect_guest(c, on_delete_late);
		if (never_ran)
			process_never_ran(p, PROCESS_KILLED);
	}
}

/* ---- what is answered at once ---- */

static void call_state(struct shim *s, uint64_t token, const struct about *a)
{
	const struct process *p = a->p;
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__StateResponse m;
	task__state_response__init(&m);
	m.id = a->c->id;
	m.exec_id = proto_text(p->exec_id);
	m.bundle = a->c->bundle;
	m.pid = (uint32_t)p->pid;
	m.status = (int32_t)p->status;
	m.stdin = p->paths[0];
	m.stdout = p->paths[1];
	m.stderr = p->paths[2];
	m.terminal = p->terminal;
	m.exit_status = p->status == PROCESS_STOPPED ? p->exit_status : 0;
	m.exited_at = p->status == PROCESS_STOPPED ? &at : NULL;
	answer_with(s->server, token, &m.base);
}

static void call_wait(struct shim *s, uint64_t token, const struct about *a)
{
	process_wait(a->p, s->server, token);
}

/* ---- Pids ---- */

/* What is known of the processes of a container, while it is packed. */
struct pids {
	struct {
		Task__ProcessInfo info;
		Task__Any any;
		uint8_t *details; /* owned */
	} v[CONTAINER_EXECS_MAX + 1];
	Task__ProcessInfo *list[CONTAINER_EXECS_MAX + 1];
	size_t n;
};

/*
 * As ctr has it: a further process says which one it is. The container's own is there until that is
 * deleted: of a container without processes containerd 1.7 takes, when it starts, that its shim has
 * leaked, and asks for no exit status.
 */
static void add_pid(struct process *p, void *ctx)
{
	static char type[] = "containerd.runc.v1.ProcessDetails";
	struct pids *l = ctx;
	size_t len = 0;
	Task__ProcessDetails m;
	if ((p->status == PROCESS_STOPPED && *p->exec_id) || p->pid == 0)
		return;
	task__process_details__init(&m);
	task__process_info__init(&l->v[l->n].info);
	task__any__init(&l->v[l->n].any);
	m.exec_id = proto_text(p->exec_id);
	l->v[l->n].info.pid = (uint32_t)p->pid;
	if (*p->exec_id)
		l->v[l->n].details = proto_pack(&m.base, &len);
	if (l->v[l->n].details) {
		l->v[l->n].any.type_url = type;
		l->v[l->n].any.value.data = l->v[l->n].details;
		l->v[l->n].any.value.len = len;
		l->v[l->n].info.info = &l->v[l->n].any;
	}
	l->list[l->n] = &l->v[l->n].info;
	l->n++;
}

static void call_pids(struct shim *s, uint64_t token, const struct about *a)
{
	cleanup_free struct pids *l = calloc(1, sizeof(*l));
	Task__PidsResponse m;
	if (!l) {
		shim_refuse_text(s, token, -ENOMEM, "out of memory");
		return;
	}
	task__pids_response__init(&m);
	add_pid(&a->c->init, l);
	container_each_exec(a->c, add_pid, l);
	m.processes = l->list;
	m.n_processes = l->n;
	answer_with(s->server, token, &m.base);
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].details);
}

/* ---- the rest ---- */

static void call_connect(struct shim *s, uint64_t token, const struct about *a)
{
	static char version[] = HUSK_VERSION;
	Task__ConnectResponse m;
	task__connect_response__init(&m);
	m.shim_pid = (uint32_t)getpid();
	m.task_pid = a->p ? (uint32_t)a->p->pid : 0;
	m.version = version;
	answer_with(s->server, token, &m.base);
}

static void call_shutdown(struct shim *s, uint64_t token, const struct about *a)
{
	(void)a;
	shim_answer_empty(s, token);
	s->asked_to_end |= !s->containers || s->pod_is_removed;
	/*
	 * What is left in a pod that is gone is cleared away from outside; who waits is told now.
	 */
	for (struct container *c = s->containers; c && s->asked_to_end; c = c->next) {
		c->init.waits_no_more = true;
		process_may_tell(&c->init);
	}
}

static void call_stats(struct shim *s, uint64_t token, const struct about *a)
{
	(void)s;
	container_count(a->c, token);
}

static void call_pause(struct shim *s, uint64_t token, const struct about *a)
{
	(void)s;
	container_pause(a->c, token, true);
}

static void call_resume(struct shim *s, uint64_t token, const struct about *a)
{
	(void)s;
	container_pause(a->c, token, false);
}

static void call_close_io(struct shim *s, uint64_t token, const struct about *a)
{
	a->p->input_ended = true; /* if there is none yet */
	input_end(&a->p->stdio.input);
	shim_answer_empty(s, token);
}

static void call_resize(struct shim *s, uint64_t token, const void *request)
{
	const Task__ResizePtyRequest *q = request;
	struct container *c = shim_find_made(s, q->id);
	struct process *p = c ? container_find_process(c, q->exec_id) : NULL;
	if (!p) {
		shim_refuse_text(s, token, -ENOENT, "there is no such process");
		return;
	}
	p->rows = (int)MIN(q->height, (uint32_t)AGENT_TTY_SIZE_MAX);
	p->columns = (int)MIN(q->width, (uint32_t)AGENT_TTY_SIZE_MAX);
	process_resize(p);
	shim_answer_empty(s, token);
}

/* ---- dispatch ---- */

/*
 * What is done with a request: with its message, or with the container and the process that it
 * names. Of most requests these are the first two fields, and all that there is to know.
 */
struct method {
	const char *name;
	const ProtobufCMessageDescriptor *type; /* NULL: a process */
	void (*with_message)(struct shim *s, uint64_t token, const void *request);
	void (*with_process)(struct shim *s, uint64_t token, const struct about *a);
	bool needs_none; /* a container need not be there */
	bool of_apps;    /* a sandbox has none of it */
};

/* Create is not among them: it keeps its message. */
static const struct method methods[] = {
	{ .name = "CloseIO", .with_process = call_close_io },
	{ .name = "Connect", .with_process = call_connect, .needs_none = true },
	{ .name = "Delete", .with_process = call_delete },
	{ .name = "Exec", .type = &task__exec_request__descriptor, .with_message = shim_exec },
	{ .name = "Kill", .type = &task__kill_request__descriptor, .with_message = shim_kill },
	{ .name = "Pause", .with_process = call_pause, .of_apps = true },
	{ .name = "Pids", .with_process = call_pids },
	{ .name = "ResizePty",
	  .type = &task__resize_pty_request__descriptor,
	  .with_message = call_resize },
	{ .name = "Resume", .with_process = call_resume, .of_apps = true },
	{ .name = "Shutdown", .with_process = call_shutdown, .needs_none = true },
	{ .name = "Start", .with_process = call_start },
	{ .name = "State", .with_process = call_state },
	{ .name = "Stats", .with_process = call_stats, .of_apps = true },
	{ .name = "Update",
	  .type = &task__update_request__descriptor,
	  .with_message = shim_update },
	{ .name = "Wait", .with_process = call_wait },
};

static void call_about(struct shim *s, uint64_t token, const struct method *method,
		       const Task__ProcessRequest *q)
{
	struct err e = ERR_INIT;
	struct about a = { .c = shim_find_made(s, q->id) };
	if (a.c)
		a.p = container_find_process(a.c, q->exec_id);
	if (!a.c && method->with_process == call_delete && !*q->exec_id)
		container_give_up(shim_find(s, q->id));
	if (!a.p && !method->needs_none)
		shim_refuse_text(s, token, -ENOENT, "there is no such process");
	else if (method->of_apps && container_need_app(a.c, &e) < 0)
		shim_refuse(s, token, &e);
	else
		method->with_process(s, token, &a);
}

static void call_method(struct shim *s, uint64_t token, const struct method *method,
			const struct ttrpc_request *q)
{
	struct proto_arena arena;
	proto_arena_init(&arena);
	const ProtobufCMessageDescriptor *type =
		method->type ? method->type : &task__process_request__descriptor;
	ProtobufCMessage *m = protobuf_c_message_unpack(type, &arena.allocator, q->len, q->payload);
	if (!m) {
		shim_refuse_text(s, token, -EBADMSG, "the request is not understood");
		return;
	}
	if (method->with_message)
		method->with_message(s, token, m);
	else
		call_about(s, token, method, (const Task__ProcessRequest *)m);
	protobuf_c_message_free_unpacked(m, &arena.allocator);
}

static void on_request(void *ctx, uint64_t token, const struct ttrpc_request *q)
{
	struct shim *s = ctx;
	size_t i = 0;
	if (strcmp(q->service, SERVICE) != 0) {
		shim_refuse_text(s, token, -EOPNOTSUPP, "this service is not known here");
		return;
	}
	while (i < ARRAY_SIZE(methods) && strcmp(q->method, methods[i].name) != 0)
		i++;
	if (strcmp(q->method, "Create") == 0)
		shim_create(s, token, q);
	else if (i < ARRAY_SIZE(methods))
		call_method(s, token, &methods[i], q);
	else
		shim_refuse_text(s, token, -EOPNOTSUPP, "this method is not supported");
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
		.ns = setup->ns,
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
	loop_timer_disarm(&s->unasked);
	ttrpc_server_free(s->server);
	free(s);
}
