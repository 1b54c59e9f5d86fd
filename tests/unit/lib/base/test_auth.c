/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static int add(struct auths *list, const char *host, const char *token)
{
	CLEANUP(auth_deinit)
	struct auth a = { .host = strdup(host), .type = AUTH_OAUTH, .token = strdup(token) };
	return a.host && a.token ? auths_add(list, &a) : -ENOMEM;
}

static void test_add(void **state)
{
	CLEANUP(auths_deinit) struct auths list = { .n = 0 };
	(void)state;
	assert_null(auths_find(&list, "a"));
	assert_int_equal(add(&list, "a", "1"), 0);
	assert_int_equal(add(&list, "b", "2"), 0);
	assert_int_equal(add(&list, "a", "3"), AUTHS_TWICE);
	assert_int_equal(list.n, 2);
	assert_string_equal(auths_find(&list, "a")->token, "1");
}

/* A full list can still be overridden, but not extended. */
static void test_limit(void **state)
{
	CLEANUP(auths_deinit) struct auths list = { .n = 0 };
	CLEANUP(auths_deinit) struct auths more = { .n = 0 };
	char host[16];
	(void)state;
	for (size_t i = 0; i < AUTHS_MAX; i++) {
		snprintf(host, sizeof(host), "%zu", i);
		assert_int_equal(add(&list, host, "t"), 0);
	}
	assert_int_equal(add(&list, "more", "t"), AUTHS_FULL);
	assert_int_equal(add(&more, "7", "new"), 0);
	assert_int_equal(auths_merge(&list, &more), 0);
	assert_string_equal(auths_find(&list, "7")->token, "new");
	assert_int_equal(add(&more, "more", "new"), 0);
	assert_int_equal(auths_merge(&list, &more), AUTHS_FULL);
	assert_int_equal(list.n, AUTHS_MAX);
}

/* Each credential has its place, and its name in JSON. */
static void test_forms(void **state)
{
	struct auth a = { .user = NULL };
	(void)state;
	for (enum auth_type t = 0; t < AUTH_TYPES; t++)
		for (size_t i = 0; i < auth_forms[t].n; i++) {
			assert_non_null(auth_forms[t].credentials[i].key);
			assert_null(*auth_value(&a, &auth_forms[t].credentials[i]));
		}
	assert_ptr_equal(auth_value(&a, &auth_forms[AUTH_OAUTH].credentials[0]), &a.token);
	assert_ptr_equal(auth_value(&a, &auth_forms[AUTH_AWS].credentials[2]), &a.aws_region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
