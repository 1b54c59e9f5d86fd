/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define COPY_MAX ((size_t)64 * 1024) /* bytes at a time: what a pipe holds */

static void on_ready(void *ctx, uint32_t events);

void input_deinit(struct input *i)
{
	loop_watch_remove(&i->watch);
	i->fifo = fd_close(i->fifo);
	i->pipe = fd_close(i->pipe);
	i->held = fd_close(i->held);
}

static bool is_full(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	return poll(&p, 1, 0) == 0;
}

/* Watches what the copying waits for. */
static void watch(struct input *i, bool fills)
{
	if (i->watch.loop && i->fills == fills)
		return;
	loop_watch_remove(&i->watch);
	i->fills = fills;
	if (loop_watch_add(i->loop, &i->watch, fills ? i->pipe : i->fifo,
			   fills ? EPOLLOUT : EPOLLIN, on_ready, i) < 0)
		input_deinit(i);
}

static bool is_empty(int fd)
{
	int n = 0;
	return ioctl(fd, FIONREAD, &n) == 0 && n == 0;
}

/* One piece: what is left tells of itself again. */
static void copy(struct input *i)
{
	ssize_t n = splice(i->fifo, NULL, i->pipe, NULL, COPY_MAX, SPLICE_F_NONBLOCK);
	bool goes_on = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
	bool full = goes_on && is_full(i->pipe);
	if (!goes_on || (i->ends && is_empty(i->fifo)))
		input_deinit(i); /* no client has it open, the process is gone, or it is to end */
	else
		watch(i, full);
}

static void on_ready(void *ctx, uint32_t events)
{
	(void)events;
	copy(ctx);
}

int input_begin(struct input *i, struct loop *loop, int fifo, int *ret)
{
	int ends[2];
	cleanup_fd int owned = fifo;
	*i = INPUT_NONE;
	i->loop = loop;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int r = fcntl(fifo, F_SETFL, O_NONBLOCK) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0
			? -errno
			: 0;
	if (r == 0)
		r = loop_watch_add(loop, &i->watch, fifo, EPOLLIN, on_ready, i);
	if (r < 0) {
		fd_close(ends[0]);
		fd_close(ends[1]);
		return r;
	}
	i->fifo = owned;
	owned = -EBADF;
	i->pipe = ends[1];
	*ret = ends[0];
	return 0;
}

void input_hold(struct input *i)
{
	char path[32];
	struct pollfd p = { .fd = i->fifo };
	if (i->fifo < 0 || i->held >= 0 || (poll(&p, 1, 0) > 0 && p.revents & POLLHUP))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", i->fifo);
	i->held = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* without it, it ends early */
}

void input_end(struct input *i)
{
	if (i->fifo < 0)
		return;
	i->ends = true;
	copy(i);
}
