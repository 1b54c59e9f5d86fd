/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <string.h>

#include "tests/support/fixture.h"

static void test_set(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	assert_int_equal(err_set(&e, -EINVAL, "image \"%s\": broken", "x"), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.text, "image \"x\": broken");
	assert_int_equal(err_set(NULL, -EIO, "nobody reads this"), -EIO);
}

static void test_sys(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	assert_int_equal(err_sys(&e, -ENOENT, "%s", "/x"), -ENOENT);
	assert_string_equal(e.text, "/x: No such file or directory");
	assert_int_equal(err_sys(NULL, -ENOENT, "x"), -ENOENT);
}

static void test_lower_reason(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	err_sys(&e, -EACCES, "cannot open X");
	assert_int_equal(err_lower_reason(&e), -EACCES);
	assert_string_equal(e.text, "cannot open X: permission denied");
	assert_int_equal(err_lower_reason(&e), -EACCES);
	assert_string_equal(e.text, "cannot open X: permission denied");
	err_set(&e, -EACCES, "Permission denied to whom");
	err_lower_reason(&e);
	assert_string_equal(e.text, "Permission denied to whom");
	err_set(&e, -EACCES, "Short");
	err_lower_reason(&e);
	assert_string_equal(e.text, "Short");
}

static void test_context(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	err_set(&e, -EBADMSG, "field");
	assert_int_equal(err_context(&e, "app %d", 3), -EBADMSG);
	assert_int_equal(err_context(&e, "manifest"), -EBADMSG);
	assert_string_equal(e.text, "manifest: app 3: field");
	assert_true(err_context(NULL, "x") < 0);
}

/* Nobody can forge lines or terminal sequences, neither in ASCII nor as U+0080 to U+009F. */
static void test_hostile_arguments(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	err_set(&e, -EINVAL, "%s", "a\nb\033[2J\177c\r\t");
	assert_string_equal(e.text, "a?b?[2J?c??");
	err_sys(&e, -EINVAL, "%s", "\n");
	assert_string_equal(e.text, "?: Invalid argument");
	err_set(&e, -EINVAL, "x");
	err_context(&e, "%s", "\n\n");
	assert_string_equal(e.text, "??: x");
	err_set(&e, -EINVAL, "%s",
		"\xc2\x9b"
		"2J \xc2\x85 \xc3\xa4 \xc2\xa0");
	assert_string_equal(e.text, "??2J ?? \xc3\xa4 \xc2\xa0");
}

static void test_limit(void **state)
{
	(void)state;
	char exact[ERR_TEXT_MAX], longer[ERR_TEXT_MAX + 1];
	memset(exact, 'x', sizeof(exact));
	memset(longer, 'x', sizeof(longer));
	exact[sizeof(exact) - 1] = longer[sizeof(longer) - 1] = '\0';
	struct err e = ERR_INIT;
	err_set(&e, -EINVAL, "%s", exact);
	assert_string_equal(e.text, exact);
	err_set(&e, -EINVAL, "%s", longer);
	assert_string_equal(e.text, exact);
	err_sys(&e, -EINVAL, "%s", exact);
	assert_string_equal(e.text, exact);
	err_context(&e, "%s", longer);
	assert_string_equal(e.text, exact);
	err_set(&e, -EINVAL, "%s", exact + 2);
	err_context(&e, "ab");
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_memory_equal(e.text, "ab: xxx", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_set),
		fixture_test(test_sys),
		fixture_test(test_lower_reason),
		fixture_test(test_context),
		fixture_test(test_hostile_arguments),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
