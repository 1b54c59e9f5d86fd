/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may block (disks that have yet to appear, mounts, sync), done in a child process so
 * that the agent itself never waits.
 */
#ifndef GUEST_AGENT_POD_JOB_H
#define GUEST_AGENT_POD_JOB_H

#include <errno.h>
#include <sys/types.h>

#include "guest-agent/fault.h"

/* The work: fills @ret if it fails; what it leaves behind in memory does not matter. */
typedef void (*job_fn)(const void *arg, struct fault *ret);

/*
 * The same with a result beside the fault: what it puts into @data, which is zeroed, counts if it
 * succeeds.
 */
typedef void (*job_data_fn)(const void *arg, void *data, struct fault *ret);

/* Most bytes of such a result: a dozen numbers and room for more. */
#define JOB_DATA_MAX 256

struct job {
	pid_t pid; /* 0 while no job runs */
	int result_fd;
};

#define JOB_INIT ((struct job){ .result_fd = -EBADF })

/*
 * Runs @fn(@arg) in a child, which has no descriptor of the agent but the three standard ones and
 * dies with the agent. 0 or FAULT_SET.
 */
int job_start(struct job *job, job_fn fn, const void *arg, struct fault *f);

/* The same for work with @size bytes of result, at most JOB_DATA_MAX. */
int job_start_data(struct job *job, job_data_fn fn, const void *arg, size_t size, struct fault *f);

/* To be called when the child was reaped: yields its fault (code 0: success) and resets. */
void job_finish(struct job *job, struct fault *ret);

/* The same for job_start_data() with the same @size; @data is written on success only. */
void job_finish_data(struct job *job, void *data, size_t size, struct fault *ret);

/* Forgets the job without waiting. */
void job_deinit(struct job *job);

#endif
