/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_STAGE1_APPS_FILTERED_H
#define TESTS_UNIT_STAGE1_APPS_FILTERED_H

/* What @fn returns, which must not make other system calls than it is about, in a child. */
int filtered_run(const char *hex, int (*fn)(void *ctx), void *ctx);

/*
 * One system call under the filter @hex, in a child: 0 if it succeeded, else its errno; -SIGNAL if
 * that ended the process.
 */
int filtered_call(const char *hex, long number, long a, long b, long c, long d);

#endif
