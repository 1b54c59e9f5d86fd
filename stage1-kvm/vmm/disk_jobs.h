/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while the machine runs, one at a time; others wait. Whoever has the
 * machine says how one is done.
 */
#ifndef STAGE1_KVM_VMM_DISK_JOBS_H
#define STAGE1_KVM_VMM_DISK_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"
#include "stage1/backend.h"

/* Each app of a pod may have one under way. */
#define DISK_JOBS_MAX AGENT_APPS_MAX

struct disk_job {
	bool remove;
	int lun;
	int fd; /* of one that comes, owned */
	backend_done_fn done;
	void *ctx;
};

/* How a job is done; both are called from the loop, and disk_jobs_finish() ends the job. */
struct disk_jobs_ops {
	void (*begin)(void *ctx); /* the first of the queue */
	void (*late)(void *ctx);  /* it has taken more than limit_ms */
	int64_t limit_ms;
};

struct disk_jobs {
	struct loop *loop;
	const struct disk_jobs_ops *ops;
	void *ctx;
	struct disk_job
		queue[DISK_JOBS_MAX]; /* the first is under way, or begins in the next turn */
	size_t n;
	struct loop_timer timer; /* of the first: for its begin, then for its limit */
};

/* None waits. All that is passed is borrowed for the life of @q. */
void disk_jobs_init(struct disk_jobs *q, struct loop *loop, const struct disk_jobs_ops *ops,
		    void *ctx);

/* Forgets all without calling anybody. */
void disk_jobs_deinit(struct disk_jobs *q);

/* Takes the descriptor of @job over, also on failure. 0: done() will be called; -E2BIG. */
int disk_jobs_add(struct disk_jobs *q, const struct disk_job *job);

/*
 * Ends the first, with @why it has failed or NULL, and whether a part of the disk may be @left. The
 * next begins from the loop, so that nobody is called from within a call.
 */
void disk_jobs_finish(struct disk_jobs *q, const struct err *why, bool left);

#endif
