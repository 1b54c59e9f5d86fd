#include "stage1-kvm/run/tsc.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#include "lib/os/clock.h"

#define READINGS 16 /* the narrowest of these was not interrupted */

struct reading {
	int64_t ns;
	uint64_t ticks;
};

static int64_t raw_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

/* Reads both clocks at the same moment, as nearly as can be had. */
static struct reading read_both(void)
{
	struct reading best = { 0 };
	int64_t narrowest = INT64_MAX;
	for (int i = 0; i < READINGS; i++) {
		int64_t before = raw_ns();
		uint64_t ticks = __rdtsc();
		int64_t width = raw_ns() - before;
		if (width < narrowest) {
			narrowest = width;
			best = (struct reading){ .ns = before + width / 2, .ticks = ticks };
		}
	}
	return best;
}

uint32_t tsc_measure_khz(void)
{
	struct reading from = read_both();
	while (raw_ns() - from.ns < TSC_MEASURE_NS)
		;
	struct reading to = read_both();
	if (to.ns <= from.ns || to.ticks <= from.ticks)
		return 0;
	double khz = (double)(to.ticks - from.ticks) * 1e6 / (double)(to.ns - from.ns);
	return khz < (double)UINT32_MAX ? (uint32_t)(khz + 0.5) : 0;
}
#else
uint32_t tsc_measure_khz(void)
{
	return 0;
}
#endif
