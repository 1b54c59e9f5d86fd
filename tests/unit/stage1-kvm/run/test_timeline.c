/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/timeline.h"

#include <string.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

static void test_print(void **state)
{
	(void)state;
	struct timeline t;
	timeline_init(&t, 1000 * NS_PER_MS);
	t.at_ns[MARK_STAGE1] = 1002 * NS_PER_MS;
	t.at_ns[MARK_AGENT] = 1500 * NS_PER_MS + 500000;
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
	timeline_reach(&t, MARK_KERNEL);
	int64_t first = t.at_ns[MARK_KERNEL];
	assert_true(first >= t.start_ns);
	timeline_reach(&t, MARK_KERNEL);
	assert_int_equal(t.at_ns[MARK_KERNEL], first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_print),
		fixture_test(test_first_time_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
