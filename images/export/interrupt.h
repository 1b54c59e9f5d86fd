/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP, SIGINT and SIGTERM put off, for a scope that leaves something behind if it is not ended
 * in good order. Whoever waits in it waits for the descriptor, too, and gives up when that gets
 * readable.
 */
#ifndef IMAGES_EXPORT_INTERRUPT_H
#define IMAGES_EXPORT_INTERRUPT_H

#include <signal.h>

struct interrupt {
	int fd; /* readable once one of the signals has come; nobody reads it */
	sigset_t old;
};

#define INTERRUPT_INIT ((struct interrupt){ .fd = -EBADF })

/* Puts the signals off. 0 or -errno. */
int interrupt_hold(struct interrupt *i);

/*
 * Lets them come: one that was put off now has the effect that it would have had, so this may not
 * return. Accepts INTERRUPT_INIT.
 */
void interrupt_release(struct interrupt *i);

#endif
