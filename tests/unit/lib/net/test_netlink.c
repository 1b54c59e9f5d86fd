/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/netlink.h"

#include <errno.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/support/fixture.h"

static void test_addresses(void **state)
{
	(void)state;
	static const char *const texts[] = { "192.0.2.1/24", "0.0.0.0/0", "255.255.255.255/32",
					     "2001:db8::1/64", "::/0" };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct net_prefix p;
		char text[NET_PREFIX_TEXT_MAX + 1];
		assert_int_equal(net_prefix_parse(texts[i], &p), 0);
		cleanup_nl_addr struct nl_addr *a = netlink_addr(&p.ip, p.len);
		assert_non_null(a);
		struct net_prefix back = netlink_prefix(a);
		net_prefix_format(&back, text);
		assert_string_equal(text, texts[i]);
		struct net_ip ip = netlink_ip(a);
		assert_memory_equal(&ip, &p.ip, sizeof(ip));
	}
}

static void test_other_families(void **state)
{
	(void)state;
	static const unsigned char mac[6];
	cleanup_nl_addr struct nl_addr *a = nl_addr_build(AF_LLC, mac, sizeof(mac));
	assert_int_equal(netlink_ip(a).family, AF_UNSPEC);
	assert_int_equal(netlink_prefix(NULL).ip.family, AF_UNSPEC);
}

static void test_failure(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	assert_int_equal(netlink_failed(-NLE_EXIST, "thing", &e), -EIO);
	assert_string_equal(e.text, "thing: Object exists");
	cleanup_nl_socket struct nl_sock *s = netlink_open(&e);
	assert_non_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_other_families),
		cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
