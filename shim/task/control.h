/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of an entrypoint of stage1 that carries the streams of a process, and can be
 * steered (--control, docs/protocol-stage1.md). It is our child, but what it passes on a guest has
 * said.
 */
#ifndef SHIM_TASK_CONTROL_H
#define SHIM_TASK_CONTROL_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"

struct control_ops {
	void (*started)(void *ctx);
	void (*exited)(void *ctx, const struct agent_exec_exited *m);
};

struct control {
	int fd; /* owned; -EBADF: there is none */
	struct loop_watch watch;
	struct buf in;
	const struct control_ops *ops;
	void *ctx;
};

#define CONTROL_NONE ((struct control){ .fd = -EBADF, .watch = LOOP_WATCH_INIT })

/* Makes both ends. @ops outlives it. *ret, the caller's, is for the entrypoint. 0 or -errno. */
int control_open(struct control *c, struct loop *loop, const struct control_ops *ops, void *ctx,
		 int *ret);

/* Ask for a signal, for the size of the terminal. Nobody there, or one who does not read: fine. */
void control_signal(struct control *c, int number);
void control_resize(struct control *c, int64_t rows, int64_t columns);

/* Hears what has been said so far. */
void control_listen(struct control *c);

/* Harmless on CONTROL_NONE. */
void control_close(struct control *c);

#endif
