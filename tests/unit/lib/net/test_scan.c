/* SPDX-License-Identifier: Apache-2.0 */
/* What is found, and what is not: that all of it is right, test_configure.c asks. Needs root. */
#include "lib/net/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

static struct net net;

static void scan_few(void)
{
	struct err e = ERR_INIT;
	assert_int_equal(net_scan(&net, &e), 0);
	assert_int_equal(net.n_interfaces, 0); /* lo is nobody's */
	own_net_ip("link add a0 type veth peer name a1");
	assert_int_equal(net_scan(&net, &e), 0);
	assert_int_equal(net.n_interfaces, 0);
	own_net_ip("link set a0 up");
	own_net_ip("link set a1 up");
	own_net_ip("address add 192.0.2.1/24 dev a0");
	own_net_ip("route add 198.51.100.0/24 via 192.0.2.2");
	own_net_ip("route add blackhole 203.0.113.0/24");
	assert_int_equal(net_scan(&net, &e), 0);
	assert_int_equal(net.n_interfaces, 2);
	assert_int_equal(net.n_rules, 0);
	for (size_t i = 0; i < 2; i++) { /* no route of the kernel, no link-local address */
		bool has = strcmp(net.interfaces[i].name, "a0") == 0;
		assert_int_equal(net.interfaces[i].n_addresses, has);
		assert_int_equal(net.interfaces[i].n_routes, has);
	}
}

static void test_few(void **state)
{
	(void)state;
	own_net_call(scan_few);
}

/* More than there is room for is told, not cut off. */
static void scan_addresses(void)
{
	struct err e = ERR_INIT;
	own_net_ip("link add a0 type veth peer name a1");
	own_net_ip("link set a0 up");
	for (int i = 0; i <= NET_ADDRESSES_MAX; i++) {
		char line[64];
		assert_int_equal(net_scan(&net, &e), 0);
		assert_int_equal(net.interfaces[0].n_addresses, i);
		snprintf(line, sizeof(line), "address add 192.0.2.%d/32 dev a0", i + 1);
		own_net_ip(line);
	}
	assert_int_equal(net_scan(&net, &e), -E2BIG);
	assert_string_equal(e.text, "interface \"a0\": more than 16 addresses");
}

static void scan_interfaces(void)
{
	struct err e = ERR_INIT;
	for (int i = 0; i <= NET_INTERFACES_MAX; i++) {
		char line[64];
		assert_int_equal(net_scan(&net, &e), 0);
		assert_int_equal(net.n_interfaces, i);
		snprintf(line, sizeof(line), "link add a%d type veth peer name b%d", i, i);
		own_net_ip(line);
		snprintf(line, sizeof(line), "link set a%d up", i);
		own_net_ip(line);
	}
	assert_int_equal(net_scan(&net, &e), -E2BIG);
	assert_non_null(strstr(e.text, "a pod can have 6"));
}

static void scan_routes(void)
{
	struct err e = ERR_INIT;
	own_net_ip("link add a0 type veth peer name a1");
	own_net_ip("link set a0 up");
	for (int i = 0; i <= NET_ROUTES_MAX; i++) {
		char line[64];
		assert_int_equal(net_scan(&net, &e), 0);
		assert_int_equal(net.interfaces[0].n_routes, i);
		snprintf(line, sizeof(line), "route add 198.51.100.%d/32 dev a0", i);
		own_net_ip(line);
	}
	assert_int_equal(net_scan(&net, &e), -E2BIG);
}

static void test_limits(void **state)
{
	(void)state;
	own_net_call(scan_addresses);
	own_net_call(scan_interfaces);
	own_net_call(scan_routes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
