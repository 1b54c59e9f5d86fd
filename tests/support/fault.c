/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the C library and the sanitizers let a program define the allocation
 * functions itself. Ours count, fail on demand, and hand on to the real ones under the names that
 * stay reachable: __libc_malloc() and so on, or __interceptor_malloc() under AddressSanitizer.
 * Counting is atomic; arming is meant for single-threaded tests. The file itself is compiled
 * without sanitizers, since they call malloc() before they are ready.
 */
#include "tests/support/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <json-c/json_tokener.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

/* There only in a program with AddressSanitizer. */
#define WEAK __attribute__((weak))
WEAK void *__interceptor_malloc(size_t size);
WEAK void *__interceptor_calloc(size_t n, size_t size);
WEAK void *__interceptor_realloc(void *p, size_t size);
WEAK void __interceptor_free(void *p);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

#define REAL(fn) (__interceptor_##fn ? __interceptor_##fn : __libc_##fn)

static atomic_ulong countdown; /* 0: disarmed */
static atomic_bool happened;
static atomic_long live;

/* See fault.h: allocations in here are not candidates. */
struct json_object *json_tokener_parse_ex(struct json_tokener *tok, const char *text, int len)
{
	unsigned long left = countdown;
	countdown = 0;
	struct json_object *(*real)(struct json_tokener *, const char *, int);
	*(void **)&real = dlsym(RTLD_NEXT, "json_tokener_parse_ex");
	struct json_object *obj = real(tok, text, len);
	countdown = left;
	return obj;
}

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

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc names them __size */
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

static char *copy_string(const char *s, size_t len)
{
	char *copy = malloc(len + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

/* The sanitizers have their own, which would not come by here. */
char *strndup(const char *s, size_t max)
{
	return copy_string(s, strnlen(s, max));
}

char *strdup(const char *s)
{
	return copy_string(s, strlen(s));
}

void free(void *p)
{
	if (p)
		live--;
	REAL(free)(p);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

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
