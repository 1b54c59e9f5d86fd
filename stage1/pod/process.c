/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "lib/os/fd.h"

/* Ours may hold secrets of the caller, and no helper needs any of it. */
static char *const environment[] = { (char[]){ PROCESS_MARK }, NULL };

/* What systemd, a terminal or kill(1) may send to every process of a pod: only we act on it. */
static const int not_theirs[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

static void on_pidfd(void *ctx, uint32_t events)
{
	(void)events;
	struct process *p = ctx;
	loop_watch_remove(&p->watch);
	spawn_wait(p->pid, &p->status);
	p->ended = true;
	p->on_end(p->ctx, p);
}

int process_start(struct process *p, struct loop *loop, struct spawn_plan *plan,
		  process_end_fn on_end, void *ctx)
{
	plan->die_with_parent = true;
	plan->no_new_privs = true;
	return process_start_keeper(p, loop, plan, on_end, ctx);
}

int process_start_keeper(struct process *p, struct loop *loop, struct spawn_plan *plan,
			 process_end_fn on_end, void *ctx)
{
	*p = (struct process){
		.cgroups = p->cgroups, .pidfd = -EBADF, .on_end = on_end, .ctx = ctx
	};
	cleanup_fd int errors = -EBADF;
	int r = logtail_open(&p->errors, loop, &errors);
	if (r < 0)
		return r;
	plan->cgroups = p->cgroups;
	plan->new_session = true;
	plan->envp = environment;
	for (size_t i = 0; i < ARRAY_SIZE(not_theirs); i++)
		sigaddset(&plan->blocked, not_theirs[i]);
	r = spawn_plan_limit(plan, RLIMIT_CORE, 0);
	if (r == 0)
		r = spawn_plan_fd(plan, errors, 2);
	if (r == 0)
		r = spawn(plan, &p->pid, &p->pidfd);
	if (r < 0) {
		logtail_close(&p->errors);
		return r;
	}
	p->loop = loop;
	r = loop_watch_add(loop, &p->watch, p->pidfd, EPOLLIN, on_pidfd, p);
	if (r < 0)
		process_deinit(p);
	return r;
}

void process_kill(struct process *p)
{
	if (p->loop && !p->ended)
		kill(p->pid, SIGKILL); /* not reaped yet, so the ID is still its own */
}

void process_await(struct process *p, int ms)
{
	struct pollfd end = { .fd = p->pidfd, .events = POLLIN };
	if (p->loop && !p->ended && poll(&end, 1, ms) > 0)
		on_pidfd(p, 0);
}

bool process_ended_well(const struct process *p)
{
	return p->ended && WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0;
}

void process_describe_end(struct process *p, char *out, size_t size)
{
	const char *line = p->errors.loop ? logtail_first_line(&p->errors) : "";
	const char *colon = *line ? ": " : "";
	if (WIFSIGNALED(p->status))
		snprintf(out, size, "killed by signal %d%s%s", WTERMSIG(p->status), colon, line);
	else
		snprintf(out, size, "exit code %d%s%s", WEXITSTATUS(p->status), colon, line);
}

void process_deinit(struct process *p)
{
	if (!p->loop)
		return;
	loop_watch_remove(&p->watch);
	if (!p->ended) {
		kill(p->pid, SIGKILL);
		spawn_wait(p->pid, &p->status);
	}
	p->pidfd = fd_close(p->pidfd);
	logtail_close(&p->errors);
	p->loop = NULL;
}
