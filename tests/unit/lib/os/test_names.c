/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/names.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static void test_capabilities(void **state)
{
	(void)state;
	assert_int_equal(names_capability("CAP_CHOWN"), CAP_CHOWN);
	assert_int_equal(names_capability("CAP_SYS_ADMIN"), CAP_SYS_ADMIN);
	assert_int_equal(names_capability("CAP_CHECKPOINT_RESTORE"), CAP_CHECKPOINT_RESTORE);
	static const char *const bad[] = { "",       "CAP_",       "CAP_CHOW", "CAP_CHOWN ",
					   "CAP_63", "CAP_CHOWNS", "63",       "CHOWN" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (names_capability(bad[i]) != -EINVAL)
			fail_msg("\"%s\"", bad[i]);
}

static void test_syscalls(void **state)
{
	(void)state;
	assert_int_equal(names_syscall("read"), SYS_read);
	assert_int_equal(names_syscall("openat2"), SYS_openat2);
	assert_int_equal(names_syscall("fchmodat2"), 452);
	assert_int_equal(names_syscall("removexattrat"), 466);
	assert_int_equal(names_syscall("chown32"), -ENOENT);
	assert_int_equal(names_syscall("set_tls"), -ENOENT);
	assert_int_equal(names_syscall("nope"), -EINVAL);
	assert_int_equal(names_syscall(""), -EINVAL);
	assert_int_equal(names_syscall("0"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_capabilities),
		fixture_test(test_syscalls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
