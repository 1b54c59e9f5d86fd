/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching the agent of a pod, by whatever way the pod's flavor has to it. */
#ifndef STAGE1_AGENT_DIAL_H
#define STAGE1_AGENT_DIAL_H

#include <stdint.h>

#include "lib/os/loop.h"

/* The way to the agent of the pod in the working directory. */
struct agent_route {
	/*
	 * Starts connecting to @port. A non-blocking descriptor, the caller's, and in *ret_events
	 * the readiness that is to be waited for; -ENOENT: the pod does not run; -ECONNREFUSED:
	 * nothing listens there (yet); -errno.
	 */
	int (*connect)(unsigned port, uint32_t *ret_events);

	/*
	 * Called when @fd is ready: 0 if it is connected, -EAGAIN if more is to be waited for,
	 * -ECONNREFUSED if nothing listens there (yet), -errno.
	 */
	int (*finish)(int fd);
};

/*
 * @fd is a connected, non-blocking stream that the callback owns, or -errno: -ECONNREFUSED when no
 * agent listens (yet), -ETIMEDOUT when nothing is said at all.
 */
typedef void (*dial_fn)(void *ctx, int fd);

struct dial {
	struct loop *loop; /* NULL while idle */
	const struct agent_route *route;
	int fd;
	struct loop_watch watch;
	dial_fn done;
	void *ctx;
};

/*
 * Starts connecting to @port behind @route. @done is called once from the loop, unless dial_stop()
 * comes first. 0 or -errno.
 */
int dial_start(struct dial *d, struct loop *loop, const struct agent_route *route, unsigned port,
	       dial_fn done, void *ctx);

/* Gives up a dial under way; harmless on an idle or zeroed one. */
void dial_stop(struct dial *d);

#endif
