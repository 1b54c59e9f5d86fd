/*
 * Theory of operation: the C library and the sanitizers let a program define the allocation
 * functions itself. Ours count, fail on demand, and hand on to the real ones under the names that
 * stay reachable: __libc_malloc() and so on, or __interceptor_malloc() under AddressSanitizer.
 * Counting is atomic; arming is meant for single-threaded tests.
 */
#include "tests/support/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"

#if defined(__SANITIZE_ADDRESS__)
#define FAULT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAULT_ASAN 1
#endif
#endif

#ifdef FAULT_ASAN
#define REAL(fn) __interceptor_##fn
#else
#define REAL(fn) __libc_##fn
#endif

extern void *REAL(malloc)(size_t size);
extern void *REAL(calloc)(size_t n, size_t size);
extern void *REAL(realloc)(void *p, size_t size);
extern void REAL(free)(void *p);

static atomic_ulong countdown; /* 0: disarmed */
static atomic_bool happened;
static atomic_long live;

/* Counts one allocation. True if it is the one to fail. */
static bool must_fail(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	happened = true;
	errno = ENOMEM;
	return true;
}

static void *count_live(void *p)
{
	if (p)
		live++;
	return p;
}

void *malloc(size_t size)
{
	return must_fail() ? NULL : count_live(REAL(malloc)(size));
}

void *calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : count_live(REAL(calloc)(n, size));
}

void *realloc(void *p, size_t size)
{
	if (must_fail())
		return NULL;
	void *moved = REAL(realloc)(p, size);
	return p ? moved : count_live(moved);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, total);
}

void free(void *p)
{
	if (p)
		live--;
	REAL(free)(p);
}

void fault_arm(unsigned long n)
{
	happened = false;
	countdown = n;
}

bool fault_disarm(void)
{
	countdown = 0;
	return happened;
}

long fault_live_allocs(void)
{
	return live;
}

/* Runs @fn with the @n-th allocation failing. True if there was such an allocation. */
static bool run_once(int (*fn)(void *ctx), void *ctx, unsigned long n, bool lenient)
{
	long before = live;
	fault_arm(n);
	int r = fn(ctx);
	bool failed = fault_disarm();
	if (live != before)
		fail_msg("allocation %lu failing: %ld allocations leaked", n, live - before);
	if (!failed && r != 0)
		fail_msg("run without a failing allocation returned %d", r);
	if (failed && (r > 0 || (r == 0 && !lenient)))
		fail_msg("allocation %lu failing: returned %d", n, r);
	return failed;
}

static void run_all(int (*fn)(void *ctx), void *ctx, bool lenient)
{
	/* Twice: the first run also pays for what libraries keep. */
	(void)fn(ctx);
	run_once(fn, ctx, 0, lenient);
	for (unsigned long n = 1; n < FAULT_ALLOCS_MAX; n++)
		if (!run_once(fn, ctx, n, lenient))
			return;
	fail_msg("more than %d allocations", FAULT_ALLOCS_MAX);
}

void for_each_failing_alloc(int (*fn)(void *ctx), void *ctx)
{
	run_all(fn, ctx, false);
}

void for_each_failing_alloc_lenient(int (*fn)(void *ctx), void *ctx)
{
	run_all(fn, ctx, true);
}
