/* SPDX-License-Identifier: Apache-2.0 */
/* What stays at an interface. Needs root. That traffic is judged, tests/system/network*.sh asks. */
#include "stage1/net/traffic.h"

#include <errno.h>
#include <net/if.h>

#include "lib/os/fd.h"
#include "stage1/net/packet_filter.h"
#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

/* Nothing is there: it can be prepared. */
static void check_bare(unsigned index)
{
	assert_int_equal(traffic_prepare(index), 0);
	assert_int_equal(traffic_release(index, TRAFFIC_IN, true), 0);
}

static void attach(void)
{
	struct err e = ERR_INIT;
	own_net_ip("link add a0 type veth peer name a1");
	unsigned index = if_nametoindex("a0");
	assert_true(traffic_judge(index, "a0", TRAFFIC_IN, -1, &e) < 0);
	check_bare(index);
	int program = packet_filter_load_redirect(1, false);
	assert_true(program >= 0);
	assert_int_equal(traffic_judge(index, "a0", TRAFFIC_IN, program, &e), 1);
	assert_int_equal(traffic_judge(index, "a0", TRAFFIC_IN, program, &e), -EEXIST);
	assert_int_equal(traffic_release(index, TRAFFIC_IN, true), 0);
	check_bare(index);
	fd_close(program);
}

static void test_nothing_stays(void **state)
{
	(void)state;
	own_net_call(attach);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nothing_stays) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
