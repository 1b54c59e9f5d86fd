/* SPDX-License-Identifier: Apache-2.0 */
/* The backend as far as it goes without a machine; system tests start those. */
#include "stage1/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fixture.h"

/* A pod that was never started takes nobody's descriptors with it. */
static void test_not_started(void **state)
{
	struct err e = ERR_INIT;
	(void)state;
	struct backend_pod *p = flavor_backend.create();
	assert_non_null(p);
	assert_int_equal(flavor_backend.option(p, "cpus", "2", &e), 0);
	assert_string_equal(flavor_backend.last_words(p), "");
	flavor_backend.free(p);
	flavor_backend.free(NULL);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		assert_true(fcntl(fd, F_GETFD) >= 0);
}

/* What cannot be is said, and nothing is made. */
static void test_check(void **state)
{
	const struct backend_wishes wishes = { 0 };
	struct err e = ERR_INIT;
	assert_int_equal(mkdirat(fixture_dir(state), "pod", 0700), 0);
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(chdir("pod"), 0);
	struct backend_pod *p = flavor_backend.create();
	assert_int_equal(flavor_backend.option(p, "accel", "tcg", &e), 0);
	assert_int_equal(flavor_backend.option(p, "qemu", "/nonexistent/qemu", &e), 0);
	assert_true(flavor_backend.check(p, &wishes, &e) < 0);
	assert_non_null(strstr(e.text, "/nonexistent/qemu"));
	flavor_backend.free(p);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(unlinkat(fixture_dir(state), "pod", AT_REMOVEDIR), 0);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		assert_true(fcntl(fd, F_GETFD) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_not_started),
		fixture_test(test_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
