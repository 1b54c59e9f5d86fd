/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plots.h"

#include "tests/support/cmocka.h"
#include "tests/support/golden.h"
#include "tests/unit/bench/example.h"

/* Rows with two columns of figures get a drawing, others none. */
static void test_script(void **state)
{
	static struct results r;
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, PLOTS_SCRIPT_MAX);
	example_make(&r);
	assert_int_equal(plots_script(&r, &out), 0);
	golden_check("bench/plots.gp", buf_data(&out), buf_len(&out));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_script) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
