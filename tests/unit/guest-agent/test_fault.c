/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/fault.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fixture.h"

static void test_text(void **state)
{
	(void)state;
	struct fault f = { 0 };
	assert_int_equal(fault_set(&f, AGENT_E_STATE, "app \"%s\"", "a\n\033[1mb\x7f"), FAULT_SET);
	assert_int_equal(f.code, AGENT_E_STATE);
	assert_string_equal(f.text, "app \"a??[1mb?\"");
	assert_int_equal(fault_sys(&f, AGENT_E_DISK, -ENOENT, "disk %d", 3), FAULT_SET);
	assert_string_equal(f.text, "disk 3: No such file or directory");
	assert_int_equal(fault_sys(&f, AGENT_E_DISK, ENOENT, "disk %d", 4), FAULT_SET);
	assert_string_equal(f.text, "disk 4: No such file or directory");
	fault_sys(&f, AGENT_E_DISK, 100000, "x");
	assert_string_equal(f.text, "x: unknown");
	struct err e = ERR_INIT;
	err_set(&e, -EBUSY, "100%% used");
	assert_int_equal(fault_err(&f, &e), FAULT_SET);
	assert_int_equal(f.code, AGENT_E_STATE);
	assert_string_equal(f.text, "100% used");
	err_set(&e, -EIO, "broken");
	assert_int_equal(fault_err(&f, &e), FAULT_SET);
	assert_int_equal(f.code, AGENT_E_INTERNAL);
}

static void test_limit(void **state)
{
	(void)state;
	struct fault f;
	char longer[AGENT_TEXT_MAX + 10];
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	fault_set(&f, AGENT_E_STATE, "%s", longer);
	assert_int_equal(strlen(f.text), AGENT_TEXT_MAX);
	fault_sys(&f, AGENT_E_STATE, EIO, "%s", longer);
	assert_int_equal(strlen(f.text), AGENT_TEXT_MAX);
	fault_sys(&f, AGENT_E_STATE, EIO, "%.*s", AGENT_TEXT_MAX - 3, longer);
	assert_int_equal(strlen(f.text), AGENT_TEXT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_text), fixture_test(test_limit) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
