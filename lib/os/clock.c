/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
