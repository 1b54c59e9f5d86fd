/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frequency of the host's time stamp counter, which is what a guest under TCG reads: QEMU
 * passes RDTSC through to the host's counter. A guest that is not told the frequency has nothing on
 * a microvm to measure it against.
 */
#ifndef STAGE1_KVM_HOSTFACTS_TSC_H
#define STAGE1_KVM_HOSTFACTS_TSC_H

#include <stdint.h>

/* Both clocks at one moment. */
struct tsc_reading {
	int64_t ns; /* of CLOCK_MONOTONIC_RAW */
	uint64_t ticks;
};

/*
 * Reads both clocks, as the beginning of a measurement. Zero if this processor has no such counter.
 */
struct tsc_reading tsc_begin(void);

/*
 * Measures the counter against the clock from @begin on, for at least TSC_MEASURE_NS: waits only
 * for what is left of that. kHz; 0 if this processor has no such counter.
 */
#define TSC_MEASURE_NS (2 * INT64_C(1000000)) /* some 20 ppm with readings 40 ns wide */
uint32_t tsc_measure_khz(const struct tsc_reading *begin);

#endif
