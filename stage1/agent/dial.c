/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/agent/dial.h"

#include <errno.h>

#include "lib/os/fd.h"

static void on_ready(void *ctx, uint32_t events)
{
	(void)events;
	struct dial *d = ctx;
	dial_fn done = d->done;
	void *done_ctx = d->ctx;
	int r = d->route->finish(d->fd);
	if (r == -EAGAIN || r == -EINTR)
		return;
	int fd = r < 0 ? r : d->fd;
	if (fd >= 0)
		d->fd = -EBADF; /* belongs to the callback now */
	dial_stop(d);
	done(done_ctx, fd);
}

int dial_start(struct dial *d, struct loop *loop, const struct agent_route *route, unsigned port,
	       dial_fn done, void *ctx)
{
	uint32_t events = 0;
	*d = (struct dial){
		.route = route, .fd = -EBADF, .watch = LOOP_WATCH_INIT, .done = done, .ctx = ctx
	};
	cleanup_fd int fd = route->connect(port, &events);
	if (fd < 0)
		return fd;
	int r = loop_watch_add(loop, &d->watch, fd, events, on_ready, d);
	if (r < 0)
		return r;
	d->loop = loop;
	d->fd = TAKE_FD(fd);
	return 0;
}

void dial_stop(struct dial *d)
{
	if (!d->loop)
		return;
	loop_watch_remove(&d->watch);
	d->fd = fd_close(d->fd);
	d->loop = NULL;
}
