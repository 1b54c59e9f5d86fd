/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a child of a test where it is about to make a system call, so that the test can change what
 * the child has just looked at: what two looks in a row are for shows in between, and nowhere else.
 */
#ifndef TESTS_SUPPORT_TRACE_H
#define TESTS_SUPPORT_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

/* In the child: waits for trace_until(). */
void trace_me(void);

/*
 * Lets the child go on until it is about to make the system call @nr, and stops it there. False if
 * it ends before; its status is *ret_status, then.
 */
bool trace_until(pid_t child, long nr, int *ret_status);

/* Lets it go on, as any child does. */
void trace_end(pid_t child);

#endif
