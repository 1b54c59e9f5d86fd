/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the host's time of day jumps: somebody has set it, or the host has slept. */
#ifndef STAGE1_SUPERVISE_HOST_CLOCK_H
#define STAGE1_SUPERVISE_HOST_CLOCK_H

#include <errno.h>

#include "lib/os/loop.h"

struct host_clock {
	int fd;
	struct loop_watch watch;
	void (*jumped)(void *ctx);
	void *ctx;
};

#define HOST_CLOCK_INIT ((struct host_clock){ .fd = -EBADF, .watch = LOOP_WATCH_INIT })

/* Calls @jumped from @loop after each jump, until host_clock_deinit(). 0 or -errno. */
int host_clock_watch(struct host_clock *c, struct loop *loop, void (*jumped)(void *ctx), void *ctx);

/* Accepts HOST_CLOCK_INIT. */
void host_clock_deinit(struct host_clock *c);

#endif
