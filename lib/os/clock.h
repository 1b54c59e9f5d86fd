/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic and wall-clock time in nanoseconds. */
#ifndef LIB_OS_CLOCK_H
#define LIB_OS_CLOCK_H

#include <stdint.h>

#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

/* CLOCK_MONOTONIC in nanoseconds; comparable between processes of one machine. */
int64_t clock_monotonic_ns(void);

/* CLOCK_REALTIME in nanoseconds since the epoch. */
int64_t clock_realtime_ns(void);

#endif
