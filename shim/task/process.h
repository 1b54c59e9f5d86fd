/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of a container: what containerd sees of it, who waits for its end, and what carries its
 * streams. It is the app's main process or a further one in the app.
 */
#ifndef SHIM_TASK_PROCESS_H
#define SHIM_TASK_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/job/job.h"
#include "shim/proto/pack.h"
#include "shim/task/control.h"
#include "shim/task/stdio.h"
#include "shim/ttrpc/server.h"

/* Requests Wait for one process; each client that is attached has one. */
#define PROCESS_WAITERS_MAX ((size_t)1024)

/* The numbers are the protocol's (containerd.v1.types.Status). */
enum process_status {
	PROCESS_UNKNOWN = 0,
	PROCESS_CREATED = 1,
	PROCESS_RUNNING = 2,
	PROCESS_STOPPED = 3,
	PROCESS_PAUSED = 4,
};

/* Of one that no exit code is known of: its pod ended without telling one. */
#define PROCESS_LOST 255

/* Of what never ran, as shells have them. */
#define PROCESS_NOT_STARTED 127
#define PROCESS_KILLED      (128 + 9)

struct container;

struct process {
	struct container *container; /* its owner's to set, as the next */
	const char *exec_id;         /* "": the main process */
	enum process_status status;
	char *paths[STDIO_COUNT]; /* owned; of the streams, "" for none */
	bool terminal;
	pid_t pid; /* of the host, which stands for it */
	bool was_started;
	bool was_killed; /* by SIGKILL, whose end must come */
	bool has_ended;  /* which may not be told yet; with this: */
	uint32_t exit_status;
	int64_t exited_ns; /* CLOCK_REALTIME */
	uint64_t *waiters; /* owned; tokens */
	size_t n_waiters;
	struct stdio stdio;     /* until they are handed over */
	struct job *streams;    /* carries them; NULL: all output is out */
	struct control control; /* of that */
	struct loop_timer
		rest;       /* until its end, or the rest of its output, is waited for no more */
	bool waits_no_more; /* its end is told though there is output left */
	bool input_ended;   /* before there was any */
	int rows, columns;  /* of the terminal; 0: as it comes */
};

/* One that is created, in no container. 0 or -ENOMEM. */
int process_init(struct process *p, const char *in, const char *out, const char *err,
		 bool terminal);

/* Ends what carries its streams, too; for those who wait nothing is done. */
void process_deinit(struct process *p);

/* Answers a request Wait, at once or when the process has ended. */
void process_wait(struct process *p, struct ttrpc_server *s, uint64_t token);

/* It has ended: all that wait are told. */
void process_end(struct process *p, struct ttrpc_server *s, uint32_t exit_status,
		 int64_t exited_ns);

/* Answers with a packed message. */
void answer_with(struct ttrpc_server *s, uint64_t token, const ProtobufCMessage *m);

#endif
