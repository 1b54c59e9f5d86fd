/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/route.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/support/fixture.h"

/* In a network namespace of our own, which is made online step by step. */
static void test_all(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0) {
		assert_int_equal(errno, EPERM);
		skip();
	}
	assert_false(route_to_world(AF_INET) || route_to_world(AF_INET6));
	assert_int_equal(system("ip link set lo up && ip link add world type veth && "
				"ip link set world up && ip link set veth0 up"),
			 0);
	assert_false(route_to_world(AF_INET) || route_to_world(AF_INET6));
	assert_int_equal(system("ip addr add 192.0.2.2/24 dev world && "
				"ip route add default via 192.0.2.1"),
			 0);
	assert_true(route_to_world(AF_INET));
	assert_false(route_to_world(AF_INET6));
	assert_int_equal(system("ip -6 route add default dev world"), 0);
	assert_true(route_to_world(AF_INET6));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
