/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/arena.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/macros.h"

#include "tests/support/fixture.h"

static void test_alloc(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, (size_t)8 << 20);
	for (size_t i = 0; i < 10000; i++) {
		unsigned char *p = arena_alloc(&a, i % 300 + 1);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % ARENA_UNIT, 0);
		for (size_t k = 0; k <= i % 300; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, i % 300 + 1);
	}
	assert_non_null(arena_alloc(&a, (size_t)1 << 20)); /* larger than a step */
}

static void test_references(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, ARENA_SPAN);
	char *first = arena_alloc(&a, 1);
	char *last = arena_alloc(&a, ARENA_SPAN - 2 * ARENA_UNIT);
	assert_non_null(last);
	assert_int_equal(arena_ref(first), 1);
	assert_int_equal(arena_ref(last), 2);
	assert_ptr_equal(arena_at(last + ARENA_SPAN / 2, 1), first);
	assert_ptr_equal(arena_at(first, arena_ref(last)), last);
	assert_null(arena_at(first, 0));
	last[ARENA_SPAN - 2 * ARENA_UNIT - 1] = 1;
}

static void test_limit(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4096); /* the first unit is never given out */
	assert_null(arena_alloc(&a, 4097));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, 4096 - ARENA_UNIT + 1));
	assert_non_null(arena_alloc(&a, 4096 - ARENA_UNIT));
	assert_null(arena_alloc(&a, 1));
	arena_deinit(&a);
	for (size_t i = 1; i < 4096 / ARENA_UNIT; i++)
		assert_non_null(arena_alloc(&a, 1));
	assert_null(arena_alloc(&a, 1));
	arena_deinit(&a);
	arena_init(&a, SIZE_MAX);
	assert_null(arena_alloc(&a, ARENA_SPAN));
	arena_deinit(NULL);
}

/* What was freed is used again for the same size, zeroed; what is large is not. */
static void test_reuse(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, (size_t)1 << 20);
	unsigned char *p = arena_alloc(&a, 33), *q = arena_alloc(&a, 36);
	unsigned char *large = arena_alloc(&a, ARENA_REUSE_MAX + 1);
	unsigned char *limit = arena_alloc(&a, ARENA_REUSE_MAX);
	memset(p, 0xff, 33);
	arena_free(&a, p, 33);
	arena_free(&a, q, 36);
	arena_free(&a, large, ARENA_REUSE_MAX + 1);
	arena_free(&a, limit, ARENA_REUSE_MAX);
	arena_free(&a, NULL, 36);
	size_t used = a.used;
	assert_ptr_equal(arena_alloc(&a, 35), q);
	assert_ptr_equal(arena_alloc(&a, 34), p);
	assert_ptr_equal(arena_alloc(&a, ARENA_REUSE_MAX), limit);
	for (size_t i = 0; i < 34; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(a.used, used);
	assert_ptr_not_equal(arena_alloc(&a, ARENA_REUSE_MAX + 1), large);
	assert_true(a.used > used);
}

/* Short memory is a NULL like any other. */
static void test_memory_is_short(void **state)
{
	(void)state;
	struct rlimit old, low;
	assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
	low = (struct rlimit){ 1 << 20, old.rlim_max };
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, ARENA_SPAN);
	assert_non_null(arena_alloc(&a, 1));
	assert_int_equal(setrlimit(RLIMIT_DATA, &low), 0);
	void *p = arena_alloc(&a, (size_t)16 << 20);
	assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
	assert_null(p);
	assert_non_null(arena_alloc(&a, (size_t)16 << 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_alloc),           fixture_test(test_references),
		fixture_test(test_limit),           fixture_test(test_reuse),
		fixture_test(test_memory_is_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
