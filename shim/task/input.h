/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input of a process, from the fifo of a client into a pipe: so it can be ended when the
 * client says so, while it, or another one, still has the fifo open.
 *
 * It ends, too, when the last client has closed the fifo, until it is held. Before the first has
 * opened it, nothing is read: there would only be an end.
 */
#ifndef SHIM_TASK_INPUT_H
#define SHIM_TASK_INPUT_H

#include <stdbool.h>

#include "lib/os/loop.h"

struct input {
	struct loop *loop;
	int fifo, pipe; /* -EBADF: it has ended */
	int held;       /* the fifo, for writing; -EBADF: it is not held */
	struct loop_watch watch;
	bool fills; /* what is watched is the pipe, which is full */
	bool ends;  /* when the fifo is empty */
};

#define INPUT_NONE \
	((struct input){ .fifo = -EBADF, .pipe = -EBADF, .held = -EBADF, .watch = LOOP_WATCH_INIT })

/*
 * Begins to copy from @fifo, which is taken over, and non-blocking from then on. *ret is what the
 * process reads. 0 or -errno.
 */
int input_begin(struct input *i, struct loop *loop, int fifo, int *ret);

/*
 * From now on it does not end with its last client, such as a containerd that is restarted, or one
 * who leaves a terminal: another may come. If all that there were have gone by now, it ends.
 */
void input_hold(struct input *i);

/* What has come is copied, and then it ends. Harmless if it has. */
void input_end(struct input *i);

/* Ends it at once. */
void input_deinit(struct input *i);

#endif
