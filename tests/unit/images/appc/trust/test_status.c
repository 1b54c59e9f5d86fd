/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/status.h"

#include "tests/support/fixture.h"

#define UPPER "9F87EFD3D3620228500FD2CF369EF706B8346AE9"
#define LOWER "9f87efd3d3620228500fd2cf369ef706b8346ae9"

static void test_valid(void **state)
{
	(void)state;
	struct status_valid v;
	assert_int_equal(
		status_valid_parse(UPPER " 2026-11-21 1795280099 0 4 0 22 8 00 " UPPER, &v), 0);
	assert_string_equal(v.signer, LOWER);
	assert_int_equal(v.kind, STATUS_BINARY);
	assert_int_equal(status_valid_parse(UPPER " 2026-11-21 1795280099 0 4 0 1 10 01", &v), 0);
	assert_int_equal(v.kind, STATUS_TEXT);
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		" ",
		UPPER,
		UPPER " 2026-11-21 1795280099 0 4 0 22 8",
		UPPER " 2026-11-21 1795280099 0 4 0 22 8 ",
		UPPER " 2026-11-21 1795280099 0 4 0 22 8 0",
		UPPER " 2026-11-21 1795280099 0 4 0 22 8 000",
		UPPER " 2026-11-21 1795280099 0 4 0 22 8 0x",
		"369EF706B8346AE9 2026-11-21 1795280099 0 4 0 22 8 00",
		UPPER UPPER " 2026-11-21 1795280099 0 4 0 22 8 00",
	};
	struct status_valid v;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(status_valid_parse(cases[i], &v), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_valid),
		fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
