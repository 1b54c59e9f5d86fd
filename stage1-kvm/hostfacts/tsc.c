/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/tsc.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#include "lib/os/clock.h"

#define READINGS 16 /* the narrowest of these was not interrupted */

static int64_t raw_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

/* At the same moment, as nearly as can be had. */
struct tsc_reading tsc_begin(void)
{
	struct tsc_reading best = { 0 };
	int64_t narrowest = INT64_MAX;
	for (int i = 0; i < READINGS; i++) {
		int64_t before = raw_ns();
		uint64_t ticks = __rdtsc();
		int64_t width = raw_ns() - before;
		if (width < narrowest) {
			narrowest = width;
			best = (struct tsc_reading){ .ns = before + width / 2, .ticks = ticks };
		}
	}
	return best;
}

uint32_t tsc_measure_khz(const struct tsc_reading *begin)
{
	while (raw_ns() - begin->ns < TSC_MEASURE_NS)
		;
	struct tsc_reading end = tsc_begin();
	if (end.ns <= begin->ns || end.ticks <= begin->ticks)
		return 0;
	double khz = (double)(end.ticks - begin->ticks) * 1e6 / (double)(end.ns - begin->ns);
	return khz < (double)UINT32_MAX ? (uint32_t)(khz + 0.5) : 0;
}
#else
struct tsc_reading tsc_begin(void)
{
	return (struct tsc_reading){ 0 };
}

uint32_t tsc_measure_khz(const struct tsc_reading *begin)
{
	(void)begin;
	return 0;
}
#endif
