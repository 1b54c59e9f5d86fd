/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/progress.h"

#include "tests/support/cmocka.h"

static void test_bar(void **state)
{
	struct progress p = { .total = 200 };
	char line[128];
	(void)state;
	progress_format(&p, 30, "first", 80, line, sizeof(line));
	assert_string_equal(line, "[....................]   0 %: first");
	progress_add(&p, 50);
	progress_format(&p, 0, "soon", 80, line, sizeof(line));
	assert_string_equal(line, "[#####...............]  25 %: soon");
	progress_format(&p, 30, "next", 80, line, sizeof(line));
	assert_string_equal(line, "[#####...............]  25 %, 1 min 30 s left: next");
	progress_format(&p, 30, "next", 30, line, sizeof(line));
	assert_string_equal(line, "[#####...............]  25 %,"); /* never wider than asked */
	progress_add(&p, 1000);
	progress_format(&p, 30, "last", 80, line, sizeof(line));
	assert_string_equal(line, "[####################] 100 %, 0 min 00 s left: last");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bar) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
