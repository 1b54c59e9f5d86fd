/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the task service share. */
#ifndef SHIM_TASK_TASK_INT_H
#define SHIM_TASK_TASK_INT_H

#include <limits.h>

#include "host/events/events.h"
#include "host/pod/app.h"
#include "shim/job/job.h"
#include "shim/pod/husk.h"
#include "shim/spec/oci_spec.h"
#include "shim/task/process.h"
#include "shim/task/task.h"
#include "shim/ttrpc/server.h"

/*
 * Files in a bundle for who clears up: the UUID of the pod; what the app in there is called, which
 * only the bundle of a container in a sandbox has; and where husk is configured.
 */
#define BUNDLE_POD_FILE    "husk-pod"
#define BUNDLE_APP_FILE    "husk-app"
#define BUNDLE_CONFIG_FILE "husk-config"
#define BUNDLE_DATA_FILE   "husk-data"

/*
 * Containers of a pod, those that are being made among them: as many as it has apps, and a sandbox.
 */
#define CONTAINERS_MAX ((size_t)AGENT_APPS_MAX + 1)

/* Further processes of a container, those of the past that nobody has deleted among them. */
#define CONTAINER_EXECS_MAX ((size_t)1024)

/* Signals for a container on their way, or waiting for its start. */
#define CONTAINER_SIGNALS_MAX ((size_t)64)

/* Requests Stats that wait for one answer. */
#define CONTAINER_COUNTING_MAX ((size_t)64)

/*
 * What a guest has to answer is waited for that long, where more than its own pod waits with it:
 * containerd's CRI plugin has one loop for all pods, and gives a Delete 10 s.
 */
#define GUEST_MS INT64_C(5000)

struct exec;    /* shim/task/exec.c */
struct sending; /* shim/task/kill.c */

struct container {
	struct shim *shim;
	struct container *next;
	char *id, *bundle; /* owned */
	char app[AGENT_NAME_MAX + 1];
	struct process init;
	struct exec *execs; /* owned */
	struct oci_spec spec;
	struct job *job;        /* what is being done with it; NULL: nothing */
	struct loop_timer late; /* until that is not waited for any more */
	bool is_deleted;        /* that is it */
	bool is_left; /* and goes on though containerd has been told: all of it is its job */
	bool pauses;  /* what Pause or Resume asks for */
	bool may_stand_still;      /* after a Pause of which nobody knows what became */
	uint64_t token;            /* of the request that the job is for */
	struct sending *signals;   /* owned; the first is being sent by: */
	struct job *sender;        /* NULL: none is */
	struct loop_timer unended; /* from SIGKILL to ending the pod, by: */
	struct job *ender;         /* NULL: nothing does */
	struct job *counter;       /* counts what it uses, for: */
	struct loop_timer count_late;
	uint64_t counting[CONTAINER_COUNTING_MAX]; /* tokens */
	size_t n_counting;
	const struct limits_change *wanted; /* while a child begins that sets them */
	int64_t wanted_period;              /* of its quota, once they are set */
	bool lost_streams;                  /* what carries them ended before anything ran */
	bool was_added;                     /* what happens to it is known from then on */
	/* While it is made. */
	unsigned n_pending;
	bool was_tried;            /* there may be a pod of it, or an app in one */
	struct husk_mount *mounts; /* owned, borrows from @request */
	size_t n_mounts;
	Task__CreateRequest *request; /* owned, of @arena; NULL: it is made, and can be asked for */
	struct proto_arena arena;
	struct husk_packed packed; /* its root directory */
	struct err failure;
};

struct shim {
	struct loop *loop;
	struct ttrpc_server *server;
	struct publisher *publisher;
	const char *ns;        /* containerd's namespace, borrowed */
	char config[PATH_MAX]; /* directory of the configuration; "": none is named */
	char data[PATH_MAX];   /* the data directory, which stays it whatever is configured later */
	struct husk_place place;
	struct container *containers;
	char uuid[UUID_TEXT_LEN + 1]; /* of the pod; "": there is none yet */
	pid_t pod_pid;                /* its supervisor */
	struct pods *pods;
	struct pod_events *events;
	bool is_silent; /* its guest: no counts are waited for, as others' are asked for next */
	bool pod_is_over;
	bool pod_is_removed; /* with the container that it was made for */
	bool asked_to_end;
	struct loop_timer unasked; /* from the last Delete to an end without Shutdown */
};

/* The container @id, or NULL. */
struct container *shim_find(struct shim *s, const char *id);

/* The same if it is made, and can be asked for. */
struct container *shim_find_made(struct shim *s, const char *id);

/* The container whose app is called @app, or NULL. */
struct container *shim_find_app(struct shim *s, const char *app);

/* Whether the pod was made for it: a sandbox, or one by itself. Then they go together. */
bool container_owns_pod(const struct container *c);

/* A job_fn: removes the app from its pod, or ends that if it is the container's. */
int container_remove(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e);

/* That is done: who clears up after us finds nothing to do, and no successor of it. */
void container_is_removed(const struct container *c);

/* 0, or -EOPNOTSUPP and @e of a sandbox: nothing runs in it that could be asked. */
int container_need_app(const struct container *c, struct err *e);

/* One that is being made is to fail. Accepts NULL and one that is made, of which that is not so. */
void container_give_up(struct container *c);

/* Takes it out and frees it. */
void shim_forget(struct container *c);

/* Refuse a request: what @e says, by its code; the same of what is said without one. */
void shim_refuse(struct shim *s, uint64_t token, const struct err *e);
void shim_refuse_text(struct shim *s, uint64_t token, int r, const char *text);

/* Answers one that has no result. */
void shim_answer_empty(struct shim *s, uint64_t token);

/*
 * Begins a job for the container and the request @token, which is refused if that fails, or if
 * another is at work. 0 or -errno.
 */
int container_begin(struct container *c, uint64_t token, job_fn fn, job_done done);

/* Calls @late(@c) if the job takes longer than a guest is waited for. */
void container_expect_guest(struct container *c, loop_timer_fn late);

/* The job is ended, if there is one; whoever asked for it is not told. */
void container_end_job(struct container *c);

/* Create. */
void shim_create(struct shim *s, uint64_t token, const struct ttrpc_request *q);

/* Kill; @request is the message, as of the next ones. */
void shim_kill(struct shim *s, uint64_t token, const void *request);

/* The container has been started, or will never be: what waits for that goes on. */
void container_send_signals(struct container *c);

/* Refuses what waits: the container is gone, or will never run. */
void container_drop_signals(struct container *c);

/* Stats, Pause, Resume; who waits for the former hears that the container is gone. */
void container_count(struct container *c, uint64_t token);
void container_drop_counting(struct container *c);
void container_pause(struct container *c, uint64_t token, bool pause);

/* Update. */
void shim_update(struct shim *s, uint64_t token, const void *request);

/* Exec. */
void shim_exec(struct shim *s, uint64_t token, const void *request);

/* The process that @exec_id names, the main one if that is "", or NULL. */
struct process *container_find_process(struct container *c, const char *exec_id);

/* Calls @fn for each further process. */
void container_each_exec(struct container *c, void (*fn)(struct process *p, void *ctx), void *ctx);

/* Start of a further process. */
void exec_start(struct process *p, uint64_t token);

/* A signal for one that is starting or runs. */
void exec_signal(struct process *p, int number);

/* Forget one that does not run; and all, which are killed if they do. */
void exec_forget(struct process *p);
void container_forget_execs(struct container *c);

/* Watches the pod, which has just been made. 0 or -errno and @e. */
int shim_watch(struct shim *s, struct err *e);

/* Between turns of the loop: a watcher that has ended has something to say, and goes. */
void shim_look_at_watcher(struct shim *s);

/* The process has ended, or its pod. */
void process_ended(struct process *p, uint32_t exit_status, int64_t exited_ns);

/* It was killed, or what it is in: its end, or else that of what carries its streams, is near. */
void process_expect_end(struct process *p);

/* What has happened to it can be told now. */
void process_may_tell(struct process *p);

/*
 * It was killed, removed or failed before it ran: it has ended so, whatever the pod says of that.
 */
void process_never_ran(struct process *p, uint32_t exit_status);

/* For the function of process_carry(), in a child. */
struct carrier {
	const struct process *process;
	int control_fd; /* the other end of its control; 0: there is none */
};

/* Opens the streams that it is to have. 0, or -errno and @e. */
int process_open_streams(struct process *p, struct err *e);

/*
 * Has @fn, which becomes the program that carries the streams of @p, run in a child with a struct
 * carrier. It is steered if there are @ops, for @p as @done is. 0 or -errno and @e.
 */
int process_carry(struct process *p, job_fn fn, job_done done, const struct control_ops *ops,
		  struct err *e);

/*
 * In that child: descriptors 0 to 2 become the streams that there are. Bit 1U << N for N; -errno.
 */
int process_take_streams(const struct process *p, struct err *e);

/* That child has ended. */
void process_streams_ended(struct process *p);

/* Has its terminal made as large as it is to be, if that is known. */
void process_resize(struct process *p);

/* Begins to carry those of the app. 0 or -errno and @e. */
int container_attach(struct container *c, struct err *e);

#endif
