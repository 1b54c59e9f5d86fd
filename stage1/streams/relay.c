/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

/* Steps per wake-up: fairness between the streams of a pod. */
#define RELAY_STEPS_MAX 16

/* What one step found. */
enum step {
	STEP_MOVED,
	STEP_WAIT_FROM,
	STEP_WAIT_TO,
	STEP_EOF,
	STEP_TARGET,
	STEP_SOURCE,
};

static bool is_ready(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	return poll(&pfd, 1, 0) > 0;
}

/* splice(2) reports one errno for both ends: find out which end is meant. */
static enum step classify_splice_error(struct relay *p, int error)
{
	if (error == EAGAIN)
		return is_ready(p->from, POLLIN) ? STEP_WAIT_TO : STEP_WAIT_FROM;
	if (error == EPIPE)
		return STEP_TARGET;
	if (error == ECONNRESET)
		return p->to_may_block ? STEP_SOURCE : STEP_TARGET;
	return STEP_SOURCE;
}

/* What is read stands behind room for the keys that were held back before. 0 or -ENOMEM. */
static int give_memory(struct relay *p)
{
	if (!p->mem)
		p->mem = malloc(DETACH_KEYS_MAX + RELAY_BUFFER_SIZE);
	if (p->mem)
		p->use_splice = false;
	return p->mem ? 0 : -ENOMEM;
}

static enum step splice_step(struct relay *p)
{
	ssize_t n = splice(p->from, NULL, p->to, NULL, 1 << 20, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0 || (n < 0 && errno == EINTR))
		return STEP_MOVED;
	if (n == 0)
		return STEP_EOF;
	if (errno == EINVAL) /* some pipe ends (opened with O_APPEND) do not take it */
		return give_memory(p) < 0 ? STEP_SOURCE : STEP_MOVED;
	return classify_splice_error(p, errno);
}

static enum step fill_step(struct relay *p)
{
	if (p->at_eof)
		return STEP_EOF;
	/* Our socket says EAGAIN by itself; a foreign descriptor must not be read before poll. */
	if (!p->to_may_block && p->from_pollable && !is_ready(p->from, POLLIN))
		return STEP_WAIT_FROM;
	char *in = p->mem + DETACH_KEYS_MAX;
	ssize_t n = read(p->from, in, RELAY_BUFFER_SIZE);
	if (n < 0 && errno == EINTR)
		return STEP_MOVED;
	if (n < 0)
		return errno == EAGAIN ? STEP_WAIT_FROM : STEP_SOURCE;
	p->head = DETACH_KEYS_MAX;
	p->tail = p->head + (size_t)n;
	if (p->keys) {
		p->head = 0;
		p->left = detach_keys_feed(p->keys, in, (size_t)n, p->mem, &p->tail);
	}
	p->at_eof = n == 0 || p->left;
	if (p->tap && n > 0)
		p->tap(p->ctx, in, (size_t)n);
	return STEP_MOVED;
}

static ssize_t write_some(struct relay *p)
{
	size_t len = p->tail - p->head;
	if (p->relay[1] >= 0)
		return write(p->relay[1], p->mem + p->head, len);
	if (!p->to_may_block)
		return send(p->to, p->mem + p->head, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!p->to_pollable)
		return write(p->to, p->mem + p->head, len);
	if (!is_ready(p->to, POLLOUT)) {
		errno = EAGAIN;
		return -1;
	}
	return write(p->to, p->mem + p->head, MIN(len, (size_t)PIPE_BUF));
}

static enum step drain_step(struct relay *p)
{
	ssize_t n = write_some(p);
	if (n >= 0) {
		p->head += (size_t)n;
		p->relayed += p->relay[1] >= 0 ? (size_t)n : 0;
		return STEP_MOVED;
	}
	if (errno == EINTR)
		return STEP_MOVED;
	if (errno == EAGAIN)
		return STEP_WAIT_TO;
	if (!p->loss || p->to_pollable) /* a reader that went */
		return STEP_TARGET;
	p->loss(p->ctx, errno);
	p->head = p->tail;
	return STEP_MOVED;
}

static enum step relay_step(struct relay *p)
{
	ssize_t n = splice(p->relay[0], NULL, p->to, NULL, p->relayed,
			   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0) {
		p->relayed -= (size_t)n;
		return STEP_MOVED;
	}
	if (errno == EINTR)
		return STEP_MOVED;
	return errno == EAGAIN ? STEP_WAIT_TO : STEP_TARGET;
}

static enum step take_step(struct relay *p)
{
	if (p->use_splice)
		return splice_step(p);
	if (p->relayed > 0)
		return relay_step(p);
	return p->head < p->tail ? drain_step(p) : fill_step(p);
}

static void relay_finish(struct relay *p, enum relay_end end)
{
	relay_end_fn ended = p->ended;
	void *ctx = p->ctx;
	relay_stop(p);
	ended(ctx, end);
}

static void on_from(void *ctx, uint32_t events);

/*
 * Waits for the source, or for the target. While the relay waits for its target the source is not
 * watched at all: a hang-up would be reported again and again.
 */
static void wait_for(struct relay *p, bool from)
{
	from = (from || !p->to_pollable) && p->from_pollable;
	if (!from)
		loop_watch_remove(&p->from_watch);
	else if (!p->from_watch.loop &&
		 loop_watch_add(p->loop, &p->from_watch, p->from, EPOLLIN, on_from, p) < 0) {
		relay_finish(p, RELAY_SOURCE);
		return;
	}
	if (p->to_pollable)
		loop_watch_modify(&p->to_watch, from ? 0 : EPOLLOUT);
}

static void relay_run(struct relay *p)
{
	enum step step = STEP_MOVED;
	for (int i = 0; i < RELAY_STEPS_MAX && step == STEP_MOVED; i++) {
		step = take_step(p);
		p->moves += step == STEP_MOVED ? 1 : 0;
	}
	switch (step) {
	case STEP_MOVED: /* out of turns: others first, then the end that has to act next */
		wait_for(p, p->head == p->tail && p->relayed == 0);
		return;
	case STEP_WAIT_FROM:
		wait_for(p, true);
		return;
	case STEP_WAIT_TO:
		wait_for(p, false);
		return;
	case STEP_EOF:
		relay_finish(p, p->left ? RELAY_LEFT : RELAY_EOF);
		return;
	case STEP_TARGET:
		relay_finish(p, RELAY_TARGET);
		return;
	case STEP_SOURCE:
		relay_finish(p, RELAY_SOURCE);
		return;
	}
}

static void on_from(void *ctx, uint32_t events)
{
	(void)events; /* a hang-up shows as end of file */
	relay_run(ctx);
}

static void on_to(void *ctx, uint32_t events)
{
	struct relay *p = ctx;
	if (events & (EPOLLERR | EPOLLHUP) && p->to_watch.events == 0) {
		/* The reader has gone while there was nothing to write: tell the writer now. */
		relay_finish(p, RELAY_TARGET);
		return;
	}
	relay_run(p);
}

/* epoll refuses files that are always ready with EPERM. */
static int try_watch(int r, bool *ret_pollable)
{
	*ret_pollable = r == 0;
	return r == -EPERM ? 0 : r;
}

static bool is_fifo(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int relay_start(struct relay *p, struct loop *loop, int from, int to, bool to_ours,
		relay_end_fn ended, void *ctx)
{
	*p = (struct relay){ .loop = loop,
			     .from = fcntl(from, F_DUPFD_CLOEXEC, 3),
			     .to = fcntl(to, F_DUPFD_CLOEXEC, 3),
			     .to_may_block = !to_ours,
			     .relay = { -EBADF, -EBADF },
			     .ended = ended,
			     .ctx = ctx };
	int r = p->from < 0 || p->to < 0 ? -errno : 0;
	p->from_watch = p->to_watch = LOOP_WATCH_INIT;
	p->use_splice = is_fifo(to_ours ? from : to);
	if (r == 0 && !p->use_splice)
		r = give_memory(p);
	if (r == 0)
		r = try_watch(loop_watch_add(loop, &p->from_watch, p->from, EPOLLIN, on_from, p),
			      &p->from_pollable);
	uint32_t to_events = p->from_pollable ? 0 : EPOLLOUT;
	if (r == 0)
		r = try_watch(loop_watch_add(loop, &p->to_watch, p->to, to_events, on_to, p),
			      &p->to_pollable);
	if (r < 0)
		relay_stop(p);
	return r;
}

/* A pipe that was opened with O_APPEND takes no splice. */
static bool takes_splice(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return is_fifo(fd) && flags >= 0 && !(flags & O_APPEND);
}

void relay_set_loss(struct relay *p, relay_loss_fn loss)
{
	p->loss = loss;
}

int relay_set_tap(struct relay *p, relay_tap_fn tap)
{
	if (p->to_may_block && takes_splice(p->to) && pipe2(p->relay, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	int r = give_memory(p);
	if (r == 0)
		p->tap = tap;
	return r;
}

int relay_watch_keys(struct relay *p, struct detach_keys *keys)
{
	int r = give_memory(p);
	p->keys = keys;
	if (r < 0)
		relay_stop(p);
	return r;
}

void relay_stop(struct relay *p)
{
	if (!p->loop)
		return;
	loop_watch_remove(&p->from_watch);
	loop_watch_remove(&p->to_watch);
	p->from = fd_close(p->from);
	p->to = fd_close(p->to);
	p->relay[0] = fd_close(p->relay[0]);
	p->relay[1] = fd_close(p->relay[1]);
	free(p->mem);
	p->mem = NULL;
	p->loop = NULL;
}

bool relay_is_stalled(const struct relay *p)
{
	return p->loop && p->to_pollable && p->to_watch.events == EPOLLOUT;
}
