/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/timeline.h"

#include <string.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

static void test_print(void **state)
{
	(void)state;
	struct timeline t;
	timeline_init(&t, 1000 * NS_PER_MS);
	timeline_reach(&t, MARK_STAGE1);
	timeline_reach(&t, MARK_AGENT);
	t.marks[0].at_ns = 1002 * NS_PER_MS;
	t.marks[1].at_ns = 1500 * NS_PER_MS + 500000;
	char text[1024] = { 0 };
	FILE *out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	timeline_print(&t, out);
	fclose(out);
	assert_string_equal(text, "timeline:        ms      step  event\n"
				  "timeline:       2.0       2.0  stage1 started\n"
				  "timeline:     500.5     498.5  agent up\n");
}

static void test_first_time_counts(void **state)
{
	(void)state;
	struct timeline t;
	timeline_init(&t, clock_monotonic_ns());
	timeline_reach(&t, "first kernel line");
	int64_t first = t.marks[0].at_ns;
	assert_true(first >= t.start_ns);
	timeline_reach(&t, "first kernel line");
	assert_int_equal(t.n_marks, 1);
	assert_int_equal(t.marks[0].at_ns, first);
}

static void test_limit(void **state)
{
	(void)state;
	static char names[TIMELINE_MARKS_MAX + 1][8];
	struct timeline t;
	timeline_init(&t, clock_monotonic_ns());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		timeline_reach(&t, names[i]);
	}
	assert_int_equal(t.n_marks, TIMELINE_MARKS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_print),
		fixture_test(test_first_time_counts),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
