/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation failures on demand: the N-th malloc(3), calloc(3), realloc(3) or reallocarray(3) of
 * the process fails, for every N, also inside shared libraries.
 *
 * A program that links test-support uses the allocator through this module, which counts and, when
 * armed, fails; it works under AddressSanitizer, too. Allocations inside json-c's tokener never
 * fail here: json-c 0.16 does not check all of them, see lib/base/json.h.
 */
#ifndef TESTS_SUPPORT_FAULT_H
#define TESTS_SUPPORT_FAULT_H

#include <stdbool.h>

/* More allocations than this before success mean a loop that never ends. */
#define FAULT_ALLOCS_MAX 100000

/* Lets the @n-th allocation from now fail with ENOMEM, once; 1 is the next. 0 disarms. */
void fault_arm(unsigned long n);

/* Disarms. True if the failure had happened. */
bool fault_disarm(void);

/* Allocations that were made and not yet freed since the program started. */
long fault_live_allocs(void);

/*
 * Runs @fn(@ctx) without a failure, then with its first allocation failing, then its second, and so
 * on until a run needs no more allocations. @fn returns 0 or a negative errno value and must have
 * freed everything it allocated. The cmocka test fails if a run without failure does not return 0,
 * if a run with one returns anything that is not negative, or if memory was leaked.
 */
void for_each_failing_alloc(int (*fn)(void *ctx), void *ctx);

/*
 * The same where a library makes do without some allocation, as vasprintf(3) does when it trims its
 * result: a run with a failure may also return 0. @fn checks its result and returns a positive
 * number if that is wrong.
 */
void for_each_failing_alloc_lenient(int (*fn)(void *ctx), void *ctx);

#endif
