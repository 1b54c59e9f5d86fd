/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal during an interactive pod: raw while the app has it, restored afterwards. */
#ifndef STAGE1_STREAMS_TTY_H
#define STAGE1_STREAMS_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct tty {
	int fd; /* borrowed; -EBADF while not raw */
	struct termios saved;
};

#define TTY_INIT ((struct tty){ .fd = -EBADF })

/* Puts the terminal @fd into raw mode. 0 or -errno (-ENOTTY). */
int tty_make_raw(struct tty *t, int fd);

/* Restores what tty_make_raw() changed; harmless if it did nothing. */
void tty_restore(struct tty *t);

/* Size of the terminal @fd; zeros if it has none. */
void tty_size(int fd, int64_t *ret_rows, int64_t *ret_cols);

/*
 * A signalfd(2) of what the user of a terminal can send, and SIGWINCH; blocked from now on. Ignores
 * SIGPIPE, so that a reader who has gone shows as EPIPE. The descriptor, owned by the caller, or
 * -errno.
 */
int tty_signal_fd(void);

#endif
