/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/loopback.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/sandbox.h"
#include "tests/support/fixture.h"

/* In a namespace of its own: down, up by who may, and up already for who may not. */
static int in_namespace(bool is_up_first)
{
	if (unshare(CLONE_NEWNET) < 0 || (is_up_first && loopback_up() < 0))
		return 100;
	if (sandbox_keep_capabilities(NULL, 0) < 0)
		return 101;
	return -loopback_up();
}

static int in_child(bool is_up_first)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_namespace(is_up_first));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_up(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(true), 0);
	assert_int_equal(in_child(false), EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
