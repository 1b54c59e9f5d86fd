/*
 * The frequency of the host's time stamp counter, which is what a guest under TCG reads: QEMU passes
 * RDTSC through to the host's counter. A guest that is not told the frequency has nothing on a
 * microvm to measure it against.
 */
#ifndef STAGE1_KVM_RUN_TSC_H
#define STAGE1_KVM_RUN_TSC_H

#include <stdint.h>

/*
 * Measures it against CLOCK_MONOTONIC_RAW, for TSC_MEASURE_NS. kHz; 0 if this processor has no such
 * counter.
 */
#define TSC_MEASURE_NS (2 * INT64_C(1000000)) /* some 20 ppm with readings 40 ns wide */
uint32_t tsc_measure_khz(void);

#endif
