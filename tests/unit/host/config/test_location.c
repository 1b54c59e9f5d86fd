/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/location.h"

#include <string.h>

#include "tests/support/fixture.h"

static void test_paths(void **state)
{
	static const struct {
		const char *location, *path;
	} good[] = {
		{ "/", "/" },
		{ "/usr/lib/x y%20z", "/usr/lib/x y%20z" },
		{ "file:///a/b", "/a/b" },
		{ "FILE:///a", "/a" },
		{ "file:/a", "/a" },
		{ "file://localhost/a", "/a" },
		{ "file://LocalHost/a", "/a" },
		{ "file:///a%20b%C3%a9", "/a b\303\251" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char path[PATH_MAX];
		assert_int_equal(location_check(good[i].location, NULL), 0);
		assert_int_equal(location_path(good[i].location, path), 0);
		assert_string_equal(path, good[i].path);
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *location, *error;
	} bad[] = {
		{ "", "location \"\": default stage1 image location is either a relative path or a "
		      "URL without scheme (write it as /PATH or file:///PATH)" },
		{ "rel/dir",
		  "location \"rel/dir\": default stage1 image location is either a relative path or a "
		  "URL without scheme (write it as /PATH or file:///PATH)" },
		{ ":x", "location \":x\": default stage1 image" },
		{ "1http://x", "location \"1http://x\": default stage1 image" },
		{ "ftp://x",
		  "location \"ftp://x\" is not a URL of scheme docker, file, http or https (write it as "
		  "/PATH or file:///PATH)" },
		{ "https:", "location \"https:\" is not a URL of" },
		{ "files:///a", "location \"files:///a\" is not a URL of" },
		{ "file:",
		  "location \"file:\" is not the URL of a file on this host (write it as" },
		{ "file:a", "location \"file:a\" is not the URL of a file on this host" },
		{ "file://host/a",
		  "location \"file://host/a\" is not the URL of a file on this host" },
		{ "file:///a?b", "location \"file:///a?b\" is not the URL" },
		{ "file:///a%00", "location \"file:///a%00\" is not the URL" },
		{ "file:///a%", "location \"file:///a%\" is not the URL" },
		{ "file:///a%1", "location \"file:///a%1\" is not the URL" },
		{ "file:///a%1g", "location \"file:///a%1g\" is not the URL" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(location_check(bad[i].location, &e), -EINVAL);
		assert_memory_equal(e.text, bad[i].error, strlen(bad[i].error));
	}
}

static void test_remote(void **state)
{
	static const char *const remote[] = { "http://x/s.aci", "HTTPS://x", "docker://x/y:1" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(remote); i++) {
		char path[PATH_MAX];
		assert_int_equal(location_check(remote[i], NULL), 0);
		assert_int_equal(location_path(remote[i], path), LOCATION_E_REMOTE);
	}
}

static void test_limit(void **state)
{
	char location[sizeof("file:") + PATH_MAX + 1], path[PATH_MAX];
	const size_t longest = PATH_MAX - 1;
	(void)state;
	memset(location, 'x', sizeof(location));
	memcpy(location, "file:/", 6);
	location[5 + longest] = '\0';
	assert_int_equal(location_path(location + 5, path), 0);
	assert_int_equal(location_check(location, NULL), 0);
	assert_int_equal(location_path(location, path), 0);
	assert_int_equal(strlen(path), longest);
	location[5 + longest] = 'x';
	location[5 + longest + 1] = '\0';
	assert_int_equal(location_check(location, NULL), -EINVAL);
	assert_true(location_path(location + 5, path) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_paths),
		fixture_test(test_bad),
		fixture_test(test_remote),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
