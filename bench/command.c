/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"

/* One read(2): the size of a pipe, so that a writer is never slower than its pipe. */
#define CHUNK_SIZE ((size_t)64 << 10)

struct command_set {
	struct runner *runner;
	struct command *commands;
	size_t n;
	size_t running;
	struct loop loop;
	struct loop_watch signals;
	struct loop_timer limit;
};

int runner_init(struct runner *r)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	*r = (struct runner){ .signal_fd = loop_signal_fd(&set), .limit_s = COMMAND_LIMIT_S };
	return r->signal_fd < 0 ? r->signal_fd : 0;
}

void command_init(struct command *c)
{
	*c = (struct command){
		.in_fd = -EBADF, .out_fd = -EBADF, .err_fd = -EBADF, .pid_fd = -EBADF
	};
	strv_init(&c->argv, COMMAND_WORDS_MAX);
	buf_init(&c->out, COMMAND_OUTPUT_MAX);
	buf_init(&c->err, COMMAND_OUTPUT_MAX);
}

int command_words(struct command *c, const char *const *words, struct err *e)
{
	int r = 0;
	for (; r == 0 && words && *words; words++)
		r = strv_add(&c->argv, *words);
	return r < 0 ? err_sys(e, r, "cannot run \"%s\"", c->argv.n > 0 ? c->argv.v[0] : "") : 0;
}

static void close_pipes(struct command *c)
{
	loop_watch_remove(&c->in);
	loop_watch_remove(&c->from_out);
	loop_watch_remove(&c->from_err);
	loop_watch_remove(&c->exit);
	fd_replace(&c->in_fd, -EBADF);
	fd_replace(&c->out_fd, -EBADF);
	fd_replace(&c->err_fd, -EBADF);
	fd_replace(&c->pid_fd, -EBADF);
}

void command_deinit(struct command *c)
{
	close_pipes(c);
	strv_deinit(&c->argv);
	buf_deinit(&c->out);
	buf_deinit(&c->err);
}

/* The beginning of an output is kept, the rest only counted. */
static void keep(struct buf *b, const char *data, size_t len)
{
	(void)buf_append(b, data, MIN(len, buf_room(b)));
}

static void on_input_wanted(void *ctx, uint32_t events)
{
	static const char zeros[CHUNK_SIZE];
	struct command *c = ctx;
	(void)events;
	ssize_t n = write(c->in_fd, zeros, MIN(c->feed, sizeof(zeros)));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->feed = n < 0 ? 0 : c->feed - (uint64_t)n;
	if (c->feed > 0)
		return;
	loop_watch_remove(&c->in);
	fd_replace(&c->in_fd, -EBADF);
}

static void note_output(struct command *c, const char *data, size_t len)
{
	c->last_ns = clock_monotonic_ns();
	if (c->bytes == 0) {
		c->first_ns = c->last_ns;
		c->first_bytes = len;
		if (c->in_fd >= 0)
			(void)loop_watch_add(&c->set->loop, &c->in, c->in_fd, EPOLLOUT,
					     on_input_wanted, c);
	}
	c->bytes += len;
	keep(&c->out, data, len);
	for (const char *at = data; c->n_marks < COMMAND_MARKS_MAX; at++) {
		at = memchr(at, '\n', len - (size_t)(at - data));
		if (!at)
			break;
		c->mark_ns[c->n_marks++] = c->last_ns;
	}
}

/* Reads once. As read(2): 0 at the end of file, negative while there is nothing. */
static ssize_t read_once(struct command *c, int fd)
{
	static char chunk[CHUNK_SIZE];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	if (n > 0 && fd == c->out_fd)
		note_output(c, chunk, (size_t)n);
	else if (n > 0)
		keep(&c->err, chunk, (size_t)n);
	return n;
}

static void on_output(void *ctx, uint32_t events)
{
	struct command *c = ctx;
	(void)events;
	if (read_once(c, c->out_fd) == 0)
		loop_watch_remove(&c->from_out);
}

static void on_error_output(void *ctx, uint32_t events)
{
	struct command *c = ctx;
	(void)events;
	if (read_once(c, c->err_fd) == 0)
		loop_watch_remove(&c->from_err);
}

/* What it wrote is in the pipes by now; a pod in the background may hold their other ends. */
static void on_exit_seen(void *ctx, uint32_t events)
{
	struct command *c = ctx;
	(void)events;
	c->end_ns = clock_monotonic_ns();
	(void)spawn_wait(c->pid, &c->status);
	while (read_once(c, c->out_fd) > 0)
		;
	while (read_once(c, c->err_fd) > 0)
		;
	close_pipes(c);
	c->pid = 0;
	if (--c->set->running == 0)
		loop_quit(&c->set->loop);
}

/* At once: the owner of the pods removes what is left of them. */
static void kill_all(struct command_set *set, bool timed_out)
{
	for (size_t i = 0; i < set->n; i++) {
		struct command *c = &set->commands[i];
		c->timed_out = c->timed_out || (timed_out && c->pid > 0);
		if (c->pid > 0)
			kill(c->pid, SIGKILL);
	}
}

static void on_limit(void *ctx)
{
	kill_all(ctx, true);
}

static void on_signal(void *ctx, uint32_t events)
{
	struct command_set *set = ctx;
	struct signalfd_siginfo info;
	(void)events;
	if (read(set->runner->signal_fd, &info, sizeof(info)) < 0)
		return;
	set->runner->interrupted = true;
	kill_all(set, false);
}

/* One end of a new pipe for this process, not blocking, the other for the child's @target. */
static int make_pipe(struct spawn_plan *plan, int target, int *ret_ours, int *ret_theirs)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fd_replace(ret_ours, ends[target == 0]);
	fd_replace(ret_theirs, ends[target != 0]);
	int r = fd_set_nonblock(*ret_ours, true);
	return r < 0 ? r : spawn_plan_fd(plan, *ret_theirs, target);
}

struct spawn_there {
	const struct spawn_plan *plan;
	struct command *command;
};

static int spawn_here(void *ctx)
{
	const struct spawn_there *s = ctx;
	return spawn(s->plan, &s->command->pid, &s->command->pid_fd);
}

static int watch_command(struct command *c)
{
	struct loop *l = &c->set->loop;
	int r = loop_watch_add(l, &c->from_out, c->out_fd, EPOLLIN, on_output, c);
	if (r == 0)
		r = loop_watch_add(l, &c->from_err, c->err_fd, EPOLLIN, on_error_output, c);
	return r < 0 ? r : loop_watch_add(l, &c->exit, c->pid_fd, EPOLLIN, on_exit_seen, c);
}

static int start_command(struct command *c)
{
	struct spawn_plan plan = { .program = c->argv.v[0],
				   .argv = c->argv.v,
				   .die_with_parent = true,
				   .new_session = true };
	cleanup_fd int in = -EBADF, out = -EBADF, err = -EBADF;
	int r = c->feed > 0 ? make_pipe(&plan, 0, &c->in_fd, &in) : 0;
	if (r == 0)
		r = make_pipe(&plan, 1, &c->out_fd, &out);
	if (r == 0)
		r = make_pipe(&plan, 2, &c->err_fd, &err);
	if (r < 0)
		return r;
	c->start_ns = clock_monotonic_ns();
	struct spawn_there s = { &plan, c };
	r = c->namespaces ? namespaces_call(c->namespaces, spawn_here, &s) : spawn_here(&s);
	if (r < 0) {
		c->pid = 0;
		return r;
	}
	c->set->running++;
	return watch_command(c);
}

static int watch_set(struct command_set *set)
{
	struct runner *r = set->runner;
	loop_timer_arm(&set->loop, &set->limit, clock_monotonic_ns() + r->limit_s * NS_PER_SEC,
		       on_limit, set);
	if (r->cleaning)
		return 0;
	return loop_watch_add(&set->loop, &set->signals, r->signal_fd, EPOLLIN, on_signal, set);
}

/* After a failure: nothing that was started is left. */
static void end_all(struct command_set *set)
{
	kill_all(set, false);
	for (size_t i = 0; i < set->n; i++) {
		if (set->commands[i].pid > 0)
			(void)spawn_wait(set->commands[i].pid, &set->commands[i].status);
		set->commands[i].pid = 0;
		close_pipes(&set->commands[i]);
	}
}

int command_run_all(struct runner *r, struct command *c, size_t n, struct err *e)
{
	struct command_set set = { .runner = r, .commands = c, .n = n };
	size_t started = 0;
	if (r->interrupted && !r->cleaning)
		return err_set(e, -EINTR, "interrupted");
	int x = loop_init(&set.loop);
	if (x < 0)
		return err_sys(e, x, "cannot watch a program");
	x = watch_set(&set);
	for (size_t i = 0; x == 0 && i < n; i++) {
		started = i;
		c[i].set = &set;
		x = start_command(&c[i]);
	}
	if (x == 0 && n > 0)
		x = loop_run(&set.loop);
	end_all(&set);
	loop_deinit(&set.loop);
	if (x < 0)
		return err_sys(e, x, "cannot run \"%s\"", c[started].argv.v[0]);
	return r->interrupted && !r->cleaning ? err_set(e, -EINTR, "interrupted") : 0;
}

/* The last line that is not blank, in @line. */
static void last_line(const struct buf *b, char *line, size_t size)
{
	const char *data = buf_data(b);
	size_t end = buf_len(b), start;
	while (end > 0 && (data[end - 1] == '\n' || data[end - 1] == ' '))
		end--;
	for (start = end; start > 0 && data[start - 1] != '\n'; start--)
		;
	snprintf(line, size, "%.*s", (int)(end - start), end > 0 ? data + start : "");
}

int command_check(const struct command *c, struct err *e)
{
	char line[512];
	if (c->timed_out)
		return err_set(e, -EIO, "timed out");
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0)
		return 0;
	if (WIFSIGNALED(c->status))
		return err_set(e, -EIO, "ended by signal %d", WTERMSIG(c->status));
	last_line(&c->err, line, sizeof(line));
	if (line[0] == '\0')
		return err_set(e, -EIO, "exit status %d", WEXITSTATUS(c->status));
	return err_set(e, -EIO, "exit status %d: %s", WEXITSTATUS(c->status), line);
}

int command_run(struct runner *r, struct command *c, struct err *e)
{
	int x = command_run_all(r, c, 1, e);
	return x < 0 ? x : command_check(c, e);
}
