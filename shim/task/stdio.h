/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard streams of a process, which containerd's clients have made as fifos, or have logged. Who
 * opened them as a shell does would wait for the other end; and who only had his own end would see
 * SIGPIPE when a client goes, of which another may come back.
 */
#ifndef SHIM_TASK_STDIO_H
#define SHIM_TASK_STDIO_H

#include "lib/base/err.h"
#include "shim/task/input.h"
#include "shim/task/logger.h"

enum {
	STDIO_COUNT = 3,
};

struct stdio {
	int fds[STDIO_COUNT]; /* for the process; -EBADF: it has no such stream */
	struct input input;   /* what it reads comes through here */
};

#define STDIO_NONE ((struct stdio){ { -EBADF, -EBADF, -EBADF }, INPUT_NONE })

/* Streams to be opened. All is borrowed. */
struct stdio_request {
	struct loop *loop;
	const char *paths[STDIO_COUNT]; /* of fifos or files, or URIs of outputs; "": none */
	struct logger_source source;    /* whose they are */
};

/* Opens what @q names. @ret stays where it is. 0, or -errno and @e. */
int stdio_open(const struct stdio_request *q, struct stdio *ret, struct err *e);

/* The process has its streams now; only its input goes on through the shim. */
void stdio_hand_over(struct stdio *s);

/* Closes all of it: who reads the outputs sees their end. */
void stdio_close(struct stdio *s);

#endif
