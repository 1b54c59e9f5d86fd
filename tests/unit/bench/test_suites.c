/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/suites.h"

#include <string.h>

#include "tests/support/cmocka.h"

/* Whoever names no suite gets all of them. */
static void test_all_rows_have_room(void **state)
{
	size_t n = 0;
	(void)state;
	for (size_t i = 0; i < suites_n_steps; i++)
		n += suites_step_rows(&suites_steps[i]);
	assert_in_range(n, 1, RESULTS_ROWS_MAX);
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; suites_names[i]; i++) {
		size_t steps = 0;
		assert_string_not_equal(suites_about(suites_names[i]), "");
		for (size_t k = 0; k < suites_n_steps; k++)
			steps += strcmp(suites_steps[k].suite, suites_names[i]) == 0;
		assert_in_range(steps, 1, suites_n_steps);
	}
	assert_string_equal(suites_about("speed"), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rows_have_room),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
