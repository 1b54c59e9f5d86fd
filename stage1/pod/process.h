/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process of the pod: started, watched through its pidfd, its first
 * error line kept.
 *
 * It has a session of its own, so no terminal and none of its signals; of an environment, nothing
 * but the mark that tells what serves a pod from whoever else works in its directory; no core
 * files; and it never gets SIGHUP, SIGINT, SIGQUIT or SIGTERM, which service managers and terminals
 * send to every process: the supervisor alone decides how a pod ends.
 */
#ifndef STAGE1_POD_PROCESS_H
#define STAGE1_POD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/os/loop.h"
#include "lib/os/spawn.h"
#include "stage1/pod/logtail.h"

#define PROCESS_MARK "HUSK_HELPER=1" /* the environment of helpers */

#define PROCESS_HOW_MAX 640 /* bytes of a phrase about how a process ended */

struct process;
typedef void (*process_end_fn)(void *ctx, struct process *p);

struct process {
	const struct spawn_cgroups *cgroups; /* set before it is started: where it is to run */
	struct loop *loop;                   /* NULL while not running */
	pid_t pid;
	int pidfd;
	int status; /* as from waitpid(2), once ended */
	bool ended;
	struct loop_watch watch;
	struct logtail errors;
	process_end_fn on_end;
	void *ctx;
};

/*
 * Starts @plan, to which descriptor 2 (the error pipe), dying with the parent and what is said
 * above are added.
 * @on_end is called once from the loop when the process has ended and was reaped. 0 or -errno.
 */
int process_start(struct process *p, struct loop *loop, struct spawn_plan *plan,
		  process_end_fn on_end, void *ctx);

/*
 * The same for a helper that takes care of others: it outlives the parent, whose end it sees
 * otherwise, and may gain privileges by programs that it starts.
 */
int process_start_keeper(struct process *p, struct loop *loop, struct spawn_plan *plan,
			 process_end_fn on_end, void *ctx);

/* Sends SIGKILL to a running process; harmless otherwise. on_end follows. */
void process_kill(struct process *p);

/*
 * Waits up to @ms milliseconds for its end, of which @on_end is told as by the loop. Harmless if it
 * has ended or never ran.
 */
void process_await(struct process *p, int ms);

/* Whether it has ended with exit code 0. */
bool process_ended_well(const struct process *p);

/*
 * Describes how it ended, for a message: "exit code 1: FIRST ERROR LINE" or "killed by signal 9",
 * in @out of @size bytes.
 */
void process_describe_end(struct process *p, char *out, size_t size);

/* Kills, reaps and frees. Harmless on a zeroed one. Does not call on_end. */
void process_deinit(struct process *p);

#endif
