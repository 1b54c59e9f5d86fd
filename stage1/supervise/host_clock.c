/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/host_clock.h"

#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define FAR_S INT64_C(9000000000) /* seconds: in the year 2255 */

/* For a time that never comes: a jump is what cancels it (timerfd_create(2)). */
static int host_clock_arm(int fd)
{
	const struct itimerspec far = { .it_value.tv_sec = FAR_S };
	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL) < 0
		       ? -errno
		       : 0;
}

static void on_jump(void *ctx, uint32_t events)
{
	struct host_clock *c = ctx;
	uint64_t expirations;
	(void)events;
	if (read(c->fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
		return;
	host_clock_arm(c->fd);
	c->jumped(c->ctx);
}

int host_clock_watch(struct host_clock *c, struct loop *loop, void (*jumped)(void *ctx), void *ctx)
{
	cleanup_fd int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = host_clock_arm(fd);
	if (r == 0)
		r = loop_watch_add(loop, &c->watch, fd, EPOLLIN, on_jump, c);
	if (r < 0)
		return r;
	c->fd = TAKE_FD(fd);
	c->jumped = jumped;
	c->ctx = ctx;
	return 0;
}

void host_clock_deinit(struct host_clock *c)
{
	loop_watch_remove(&c->watch);
	fd_close(c->fd);
	*c = HOST_CLOCK_INIT;
}
