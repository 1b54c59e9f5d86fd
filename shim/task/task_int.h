/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the task service share. */
#ifndef SHIM_TASK_TASK_INT_H
#define SHIM_TASK_TASK_INT_H

#include <limits.h>

#include "host/events/events.h"
#include "shim/job/job.h"
#include "shim/pod/husk.h"
#include "shim/spec/oci_spec.h"
#include "shim/task/process.h"
#include "shim/task/task.h"
#include "shim/ttrpc/server.h"

/* Files in the bundle of who made the pod: its UUID, and where husk is configured. */
#define BUNDLE_POD_FILE    "husk-pod"
#define BUNDLE_CONFIG_FILE "husk-config"

struct container {
	struct shim *shim;
	struct container *next;
	char *id, *bundle; /* owned */
	char app[AGENT_NAME_MAX + 1];
	struct process init;
	struct oci_spec spec;
	struct stdio stdio;
	struct job *job;        /* what is being done with it; NULL: nothing */
	uint64_t token;         /* of the request that the job is for */
	struct job *streams;    /* copies its output; NULL: all is out */
	struct loop_timer rest; /* until the rest of its output must be out */
	bool lost_streams;      /* what copies them ended before anything ran */
	bool was_added, was_started;
	bool has_ended; /* told by the pod; with this: */
	uint32_t exit_status;
	int64_t exited_ns;
	/* While it is made. */
	unsigned n_pending;
	struct husk_mount *mounts; /* owned, borrows from @request */
	size_t n_mounts;
	Task__CreateRequest *request; /* owned, of @arena; NULL: it is made, and can be asked for */
	struct proto_arena arena;
	char image[IMAGE_ID_LEN + 1];
	struct err failure;
};

struct shim {
	struct loop *loop;
	struct ttrpc_server *server;
	struct publisher *publisher;
	char config[PATH_MAX]; /* directory of the configuration; "": none is named */
	struct husk_place place;
	struct container *containers;
	char uuid[UUID_TEXT_LEN + 1]; /* of the pod; "": there is none yet */
	pid_t pod_pid;                /* its supervisor */
	struct pods *pods;
	struct pod_events *events;
	bool pod_is_over;
	bool asked_to_end;
};

/* The container @id, or NULL. */
struct container *shim_find(struct shim *s, const char *id);

/* The container whose app is called @app, or NULL. */
struct container *shim_find_app(struct shim *s, const char *app);

/* Takes it out and frees it. */
void shim_forget(struct container *c);

/* Refuses a request: what @e says, by its code. */
void shim_refuse(struct shim *s, uint64_t token, const struct err *e);

/* Create. */
void shim_create(struct shim *s, uint64_t token, const struct ttrpc_request *q);

/* Watches the pod, which has just been made. 0 or -errno and @e. */
int shim_watch(struct shim *s, struct err *e);

/* Between turns of the loop: a watcher that has ended has something to say, and goes. */
void shim_look_at_watcher(struct shim *s);

/* The container's app has ended, or its pod. */
void container_ended(struct container *c, uint32_t exit_status, int64_t exited_ns);

/* What has happened to it can be told now. */
void container_may_tell(struct container *c);

/* It was killed, removed or failed before it ran: it has ended so, unless the pod knows better. */
void container_never_ran(struct container *c, uint32_t exit_status);

/* Begins to copy its streams. 0 or -errno and @e. */
int container_attach(struct container *c, struct err *e);

#endif
