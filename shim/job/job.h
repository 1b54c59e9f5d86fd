/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes its time is done by a child of the shim, which goes on serving meanwhile: a function
 * in a copy of this process. What it allocates, opens and mounts goes with it.
 */
#ifndef SHIM_JOB_JOB_H
#define SHIM_JOB_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"

#define JOB_TEXT_MAX ((size_t)2047) /* bytes of a text that a job yields: some twenty counts */

struct job;

/*
 * In the child: 0, or -errno and @e. @text, which is empty, may get what is to be yielded. With
 * JOB_EXECUTES it may exec(2) another program, and then yields that one's exit code. Standard input
 * and output are /dev/null, errors go where the shim's do, and no signal is blocked.
 */
typedef int (*job_fn)(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e);

/* How a job has ended, for the time of the call. */
struct job_end {
	int result;          /* of its function; -EIO if it did not come to an end */
	const char *text;    /* what it yielded, or "" */
	const struct err *e; /* filled if @result is negative */
	/* Of the program that it became; 128 and the signal's number if a signal ended it. */
	int exit_code;
};

typedef void (*job_done)(void *ctx, const struct job_end *end);

/* What a job is. */
enum {
	JOB_BOUND = 1,    /* it dies with the shim */
	JOB_EXECUTES = 2, /* it becomes another program: without a result of its own all is well */
};

/*
 * Starts @fn(@fn_ctx) in a child, with @flags as above. @done(@ctx) is called from the loop when it
 * has ended, and frees @ret, which may be NULL. 0 or -errno.
 */
int job_start(struct loop *loop, job_fn fn, void *fn_ctx, unsigned int flags, job_done done,
	      void *ctx, struct job **ret);

/* The process that it is. */
pid_t job_pid(const struct job *j);

/* Sends a signal to the job. */
void job_kill(const struct job *j, int number);

/* Ends the job, of whose end nobody hears. Accepts NULL. */
void job_free(struct job *j);

#endif
