/*
 * Work that may block (disks that have yet to appear, mounts, sync), done in a child process so that
 * the agent itself never waits.
 */
#ifndef GUEST_AGENT_JOB_H
#define GUEST_AGENT_JOB_H

#include <errno.h>
#include <sys/types.h>

#include "guest-agent/fault.h"

/* The work: fills @ret if it fails; what it leaves behind in memory does not matter. */
typedef void (*job_fn)(const void *arg, struct fault *ret);

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

/* To be called when the child was reaped: yields its fault (code 0: success) and resets. */
void job_finish(struct job *job, struct fault *ret);

/* Forgets the job without waiting. */
void job_deinit(struct job *job);

#endif
