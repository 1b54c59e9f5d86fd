/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/disk_jobs.h"

#include <errno.h>
#include <string.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"

void disk_jobs_init(struct disk_jobs *q, struct loop *loop, const struct disk_jobs_ops *ops,
		    void *ctx)
{
	*q = (struct disk_jobs){ .loop = loop, .ops = ops, .ctx = ctx };
}

void disk_jobs_deinit(struct disk_jobs *q)
{
	loop_timer_disarm(&q->timer);
	for (size_t i = 0; i < q->n; i++)
		fd_close(q->queue[i].fd);
	q->n = 0;
}

static void on_begin(void *ctx)
{
	struct disk_jobs *q = ctx;
	loop_timer_arm(q->loop, &q->timer, clock_monotonic_ns() + q->ops->limit_ms * NS_PER_MS,
		       q->ops->late, q->ctx);
	q->ops->begin(q->ctx);
}

static void begin_soon(struct disk_jobs *q)
{
	loop_timer_arm(q->loop, &q->timer, clock_monotonic_ns(), on_begin, q);
}

int disk_jobs_add(struct disk_jobs *q, const struct disk_job *job)
{
	if (q->n == DISK_JOBS_MAX) {
		fd_close(job->fd);
		return -E2BIG;
	}
	q->queue[q->n++] = *job;
	if (q->n == 1)
		begin_soon(q);
	return 0;
}

void disk_jobs_finish(struct disk_jobs *q, const struct err *why, bool left)
{
	struct disk_job job = q->queue[0];
	fd_close(job.fd);
	q->n--;
	memmove(&q->queue[0], &q->queue[1], q->n * sizeof(q->queue[0]));
	loop_timer_disarm(&q->timer);
	if (q->n > 0)
		begin_soon(q);
	job.done(job.ctx, why, left);
}
