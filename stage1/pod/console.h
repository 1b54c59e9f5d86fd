/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pod itself says, on the console of its guest or as the agent's errors: kept in a bounded
 * log, read line by line for what the supervisor wants to know. All bytes come from the pod.
 */
#ifndef STAGE1_POD_CONSOLE_H
#define STAGE1_POD_CONSOLE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/macros.h"

/*
 * The log is console.log and, once that is full, console.log.old before it: the host stores at most
 * twice this, whatever the guest prints. A boot with all messages takes some 30 KiB.
 */
#define CONSOLE_LOG_MAX ((size_t)256 * 1024)

/* Longest line that is looked at; the rest of a longer one is logged only. */
#define CONSOLE_LINE_MAX 256

/* Bytes that wait for the end of their line: a serial port brings them one by one. */
#define CONSOLE_PENDING_MAX ((size_t)512)

struct console {
	int dir_fd; /* pod directory, borrowed */
	int log_fd;
	size_t logged; /* bytes in the present log file */
	size_t n_pending;
	char pending[CONSOLE_PENDING_MAX];
	size_t len; /* bytes of the present line */
	size_t n_lines;
	char line[CONSOLE_LINE_MAX + 1];
	char last[CONSOLE_LINE_MAX + 1];  /* last complete line that was not empty */
	char panic[CONSOLE_LINE_MAX + 1]; /* the line of a kernel panic; empty: none seen */
};

#define CONSOLE_INIT ((struct console){ .dir_fd = -EBADF, .log_fd = -EBADF })

/* Opens the log in @dir_fd, which must stay open. 0 or -errno. */
int console_init(struct console *c, int dir_fd);

/* Logs what is left and closes the log. Accepts CONSOLE_INIT. */
void console_deinit(struct console *c);

/*
 * Takes bytes from the pod. A log that cannot be written any more (full disk) is given up
 * silently: the console must not stop the pod. What is logged is complete up to the last newline.
 */
void console_feed(struct console *c, const char *data, size_t len);

#endif
