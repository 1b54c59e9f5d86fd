#include "host/render/arena.h"

#include <stdint.h>
#include <string.h>

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
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t k = 0; k <= i % 300; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, i % 300 + 1);
	}
	assert_non_null(arena_alloc(&a, (size_t)1 << 20)); /* larger than a chunk */
	assert_string_equal(arena_copy(&a, "text", 4), "text");
	assert_string_equal(arena_copy(&a, NULL, 0), "");
}

static void test_limit(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4096);
	assert_null(arena_alloc(&a, 4097));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_copy(&a, "", SIZE_MAX));
	assert_non_null(arena_alloc(&a, 4096));
	assert_null(arena_alloc(&a, 1));
	arena_deinit(&a);
	for (int i = 0; i < 4096 / 16; i++)
		assert_non_null(arena_alloc(&a, 1));
	assert_null(arena_alloc(&a, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_alloc), fixture_test(test_limit) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
