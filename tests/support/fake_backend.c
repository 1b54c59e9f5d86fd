/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fake_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"

static int connect_agent(unsigned port, uint32_t *ret_events)
{
	cleanup_fd int fd = unix_connect(FAKE_AGENT_SOCKET);
	*ret_events = EPOLLOUT;
	if (fd < 0 || port != AGENT_PORT)
		return fd < 0 ? fd : -EADDRNOTAVAIL;
	int r = fd_set_nonblock(fd, true);
	return r < 0 ? r : TAKE_FD(fd);
}

static int finish(int fd)
{
	(void)fd;
	return 0;
}

static const struct agent_route fake_route = { .connect = connect_agent, .finish = finish };

static int take_option(struct backend_pod *p, const char *name, const char *value, struct err *e)
{
	(void)p;
	return strcmp(value, "bad") == 0 ? err_set(e, -EINVAL, "--%s=%s is bad", name, value) : 0;
}

static int check(struct backend_pod *p, const struct backend_wishes *wishes, struct err *e)
{
	(void)wishes;
	(void)p;
	(void)e;
	return 0;
}

static int prepare(struct backend_pod *p, const struct backend_input *in,
		   struct agent_pod_setup *setup, struct err *e)
{
	(void)p;
	(void)in;
	(void)setup;
	(void)e;
	return 0;
}

static int start(struct backend_pod *p, struct loop *loop, const int *images,
		 const struct backend_events *events, void *ctx, struct err *e)
{
	(void)images;
	(void)e;
	p->loop = loop;
	p->events = events;
	p->ctx = ctx;
	return 0;
}

static int add_job(struct backend_pod *p, bool is_unplug, int slot, backend_done_fn done, void *ctx)
{
	if (p->is_early)
		return -ENOTCONN;
	if (p->n_jobs == AGENT_APPS_MAX)
		return -E2BIG;
	if (slot < 0 || slot >= AGENT_APPS_MAX || p->lost[slot])
		abort();
	p->jobs[p->n_jobs++] = (struct fake_job){ is_unplug, slot, done, ctx };
	return 0;
}

static int plug(struct backend_pod *p, int slot, int fd, backend_done_fn done, void *ctx)
{
	fd_close(fd);
	return add_job(p, false, slot, done, ctx);
}

static int unplug(struct backend_pod *p, int slot, backend_done_fn done, void *ctx)
{
	return add_job(p, true, slot, done, ctx);
}

void fake_backend_answer(struct backend_pod *p, const char *refusal, bool left)
{
	struct err why = ERR_INIT;
	if (p->n_jobs == 0)
		return;
	struct fake_job job = p->jobs[0];
	p->n_jobs--;
	memmove(p->jobs, p->jobs + 1, p->n_jobs * sizeof(p->jobs[0]));
	if (refusal)
		err_set(&why, -EIO, "%s", refusal);
	p->lost[job.slot] = refusal && left;
	job.done(job.ctx, refusal ? &why : NULL, refusal && left);
}

static void on_end(void *ctx)
{
	struct backend_pod *p = ctx;
	struct err why = ERR_INIT;
	err_set(&why, -EIO, FAKE_END);
	p->events->ended(p->ctx, &why);
}

void fake_backend_end(struct backend_pod *p)
{
	loop_timer_arm(p->loop, &p->end, clock_monotonic_ns(), on_end, p);
}

static void kill_pod(struct backend_pod *p)
{
	p->kills++;
	fake_backend_end(p);
}

static void drop_pod(struct backend_pod *p)
{
	p->drops++;
	fake_backend_end(p);
}

static const char *last_words(const struct backend_pod *p)
{
	(void)p;
	return FAKE_LAST_WORDS;
}

static size_t count_queues(const struct backend_pod *p)
{
	(void)p;
	return 1;
}

static void free_pod(struct backend_pod *p)
{
	if (p)
		loop_timer_disarm(&p->end);
}

static const char *const options[] = { "colour", NULL };

const struct backend fake_backend = {
	.flavor = "fake",
	.queues = count_queues,
	.options = options,
	.route = &fake_route,
	.option = take_option,
	.check = check,
	.prepare = prepare,
	.start = start,
	.plug = plug,
	.unplug = unplug,
	.kill = kill_pod,
	.drop = drop_pod,
	.last_words = last_words,
	.free = free_pod,
};
