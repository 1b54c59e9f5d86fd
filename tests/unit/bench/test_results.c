/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/results.h"

#include "tests/support/cmocka.h"
#include "tests/unit/bench/example.h"

#define NEAR 1e-9

static void test_one(void **state)
{
	(void)state;
	struct stats s = stats_of((const double[]){ 7 }, 1);
	assert_float_equal(s.min, 7, NEAR);
	assert_float_equal(s.q1, 7, NEAR);
	assert_float_equal(s.median, 7, NEAR);
	assert_float_equal(s.q3, 7, NEAR);
	assert_float_equal(s.max, 7, NEAR);
}

/* The order does not matter; quartiles as numpy.percentile() has them. */
static void test_several(void **state)
{
	(void)state;
	struct stats s = stats_of((const double[]){ 4, 1, 3, 2 }, 4);
	assert_float_equal(s.min, 1, NEAR);
	assert_float_equal(s.q1, 1.75, NEAR);
	assert_float_equal(s.median, 2.5, NEAR);
	assert_float_equal(s.q3, 3.25, NEAR);
	assert_float_equal(s.max, 4, NEAR);
	s = stats_of((const double[]){ 30, 10, 20 }, 3);
	assert_float_equal(s.q1, 15, NEAR);
	assert_float_equal(s.median, 20, NEAR);
}

static void test_most(void **state)
{
	double v[RESULTS_ROUNDS_MAX];
	(void)state;
	for (size_t i = 0; i < RESULTS_ROUNDS_MAX; i++)
		v[i] = (double)(RESULTS_ROUNDS_MAX - i);
	struct stats s = stats_of(v, RESULTS_ROUNDS_MAX);
	assert_float_equal(s.min, 1, NEAR);
	assert_float_equal(s.max, RESULTS_ROUNDS_MAX, NEAR);
}

static void test_ratio(void **state)
{
	static struct results r;
	double ratio = -1;
	(void)state;
	example_make(&r);
	assert_true(results_ratio(&r.rows[0], 1, &ratio));
	assert_float_equal(ratio, 0.05025, NEAR);
	assert_false(results_ratio(&r.rows[0], 2, &ratio)); /* nothing to compare */
	r.rows[0].cells[0].n = 0;
	assert_false(results_ratio(&r.rows[0], 1, &ratio)); /* or to compare with */
	r.rows[0].cells[0] = (struct cell){ .n = 1 };
	assert_false(results_ratio(&r.rows[0], 1, &ratio)); /* 0 */
}

static void test_facts(void **state)
{
	static struct results r;
	(void)state;
	for (size_t i = 0; i <= RESULTS_FACTS_MAX; i++)
		results_add_fact(&r, "key", "Title", "text");
	assert_int_equal(r.n_facts, RESULTS_FACTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),   cmocka_unit_test(test_several),
		cmocka_unit_test(test_most),  cmocka_unit_test(test_ratio),
		cmocka_unit_test(test_facts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
