/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has started an entrypoint, and steers it (the option --control, docs/protocol-stage1.md): a
 * program that cannot do it as a person at a terminal does, by signals and by the terminal's size.
 *
 * Messages are the agent's, of process STAGE1_CONTROL_EXEC, whatever number it has there. Who
 * controls is trusted as far as one who has started us is; what is no message ends that, and
 * nothing else.
 */
#ifndef STAGE1_ENTRY_CONTROLLER_H
#define STAGE1_ENTRY_CONTROLLER_H

#include "lib/base/buf.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"

struct controller_ops {
	void (*signal)(void *ctx, int64_t number); /* NULL: passed over */
	void (*resize)(void *ctx, int64_t rows, int64_t cols);
};

struct controller {
	int fd; /* borrowed; -EBADF: there is none */
	struct loop_watch watch;
	struct buf in;
	const struct controller_ops *ops;
	void *ctx;
};

#define CONTROLLER_NONE ((struct controller){ .fd = -EBADF, .watch = LOOP_WATCH_INIT })

/*
 * True if @arg is the option, in the decimal descriptor *ret, a stream socket: nobody else's from
 * now on, and not that of programs that are executed.
 */
bool controller_option(const char *arg, int *ret);

/*
 * Listens to @fd, which outlives it; to nobody if it is negative. What has been sent before is
 * heard at once. 0 or -errno.
 */
int controller_listen(struct controller *c, struct loop *loop, int fd,
		      const struct controller_ops *ops, void *ctx);

/* Listens no more. Harmless on CONTROLLER_NONE. */
void controller_ignore(struct controller *c);

/*
 * Tell @fd, which may be negative, that the process runs; and how it has ended, or why there will
 * be none. Nobody has to hear it.
 */
void controller_tell_started(int fd);
void controller_tell_exited(int fd, const struct agent_exec_exited *m);

#endif
