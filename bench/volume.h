/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that pods of a contender are given, anew for each measurement. */
#ifndef BENCH_VOLUME_H
#define BENCH_VOLUME_H

#include "lib/base/err.h"

struct contender;

#define VOLUME_TARGET "/v" /* where they are in a pod */

/*
 * Makes an empty one of @kind ("empty", "host", "block") for the next pods of @c; NULL: they have
 * none any more. -ENOTSUP if it can have no such, or -errno, with @e.
 */
int volume_make(struct contender *c, const char *kind, struct err *e);

#endif
