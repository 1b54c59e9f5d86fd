/* SPDX-License-Identifier: Apache-2.0 */
/* In a network namespace of the test's own. Needs root. */
#include "lib/net/proc_sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/file.h"
#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

static void refuse(const char *text, int error, const char *want)
{
	struct err e = ERR_INIT;
	assert_int_equal(proc_sys_set(text, &e), error);
	assert_string_equal(e.text, want);
}

static void in_own_net(void)
{
	struct err e = ERR_INIT;
	size_t len;
	cleanup_free char *text = NULL;
	assert_int_equal(proc_sys_set("net.core.somaxconn=77", &e), 0);
	assert_int_equal(file_read_path("/proc/sys/net/core/somaxconn", 64, &text, &len), 0);
	assert_string_equal(text, "77\n");
	refuse("net.core.nothing=1", -ENOENT,
	       "sysctl \"net.core.nothing\": the pod has none of that name");
	refuse("net.core=1", -EISDIR, "sysctl \"net.core\" cannot be changed in this pod");
	refuse("net/core/somaxconn=many", -EINVAL,
	       "sysctl \"net/core/somaxconn\": its value \"many\": Invalid argument");
	refuse("net/../kernel/hostname=x", -EINVAL,
	       "sysctl \"net/../kernel/hostname\": its value \"x\": Invalid argument");
}

static void test_set(void **state)
{
	(void)state;
	own_net_call(in_own_net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
