/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/content.h"

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

#define MAP CLEANUP(content_map_deinit) struct content_map m = CONTENT_MAP_INIT

static void check(const struct content_map *m, size_t n, const struct content_piece *want)
{
	assert_int_equal(m->n, n);
	assert_memory_equal(m->v, want, n * sizeof(*want));
}

#define CHECK(...)                                                                \
	check(&m, sizeof((struct content_piece[]){ __VA_ARGS__ }) / sizeof(*m.v), \
	      (const struct content_piece[]){ __VA_ARGS__ })

static void test_add(void **state)
{
	(void)state;
	MAP;
	assert_int_equal(content_map_add(&m, 0, 10, 100), 0);
	assert_int_equal(content_map_add(&m, 10, 10, 110), 0);
	assert_int_equal(content_map_add(&m, 20, 0, 7), 0);
	assert_int_equal(content_map_add(&m, 20, 10, 300), 0);
	assert_int_equal(content_map_add(&m, 40, 10, 310), 0);
	CHECK({ 0, 20, 100 }, { 20, 10, 300 }, { 40, 10, 310 });
	assert_int_equal(content_map_add(&m, 49, 10, 0), -EBADMSG);
	assert_int_equal(content_map_add(&m, UINT64_MAX, 10, 0), -EBADMSG);
}

static void test_maximum(void **state)
{
	(void)state;
	MAP;
	for (size_t i = 0; i < CONTENT_PIECES_MAX; i++)
		assert_int_equal(content_map_add(&m, 2 * i, 1, 0), 0);
	assert_int_equal(content_map_add(&m, 2 * CONTENT_PIECES_MAX, 1, 0), -E2BIG);
}

static void test_clip(void **state)
{
	(void)state;
	MAP;
	content_map_clip(&m, 5);
	assert_int_equal(content_map_add(&m, 0, 10, 100), 0);
	assert_int_equal(content_map_add(&m, 20, 10, 200), 0);
	assert_int_equal(content_map_add(&m, 30, 10, 500), 0);
	content_map_clip(&m, 25);
	CHECK({ 0, 10, 100 }, { 20, 5, 200 });
	content_map_clip(&m, 20);
	CHECK({ 0, 10, 100 });
	content_map_clip(&m, 0);
	assert_int_equal(m.n, 0);
}

/* Holes below the minimum become zeros; at the minimum they stay. */
static void test_fill(void **state)
{
	(void)state;
	MAP;
	assert_int_equal(content_map_add(&m, 9, 1, 100), 0);
	assert_int_equal(content_map_add(&m, 20, 1, 200), 0);
	assert_int_equal(content_map_add(&m, 30, 1, 300), 0);
	assert_int_equal(content_map_fill(&m, 40, 10), 0);
	CHECK({ 0, 9, CONTENT_ZEROS }, { 9, 1, 100 }, { 20, 1, 200 }, { 21, 9, CONTENT_ZEROS },
	      { 30, 1, 300 }, { 31, 9, CONTENT_ZEROS });
	CLEANUP(content_map_deinit) struct content_map empty = CONTENT_MAP_INIT;
	assert_int_equal(content_map_fill(&empty, 10, 10), 0);
	assert_int_equal(empty.n, 0);
	assert_int_equal(content_map_fill(&empty, 9, 10), 0);
	assert_int_equal(empty.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add),
		fixture_test(test_maximum),
		fixture_test(test_clip),
		fixture_test(test_fill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
