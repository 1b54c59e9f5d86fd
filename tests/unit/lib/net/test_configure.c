/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is configured in a network namespace, and what is then read there, is the same. Needs root.
 */
#include "lib/net/configure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/net/scan.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

#define MAC0 "02:00:5e:00:53:01"
#define MAC1 "02:00:5e:00:53:02"

/* Two interfaces that know nothing yet. */
static void make_interfaces(void)
{
	own_net_ip("link add old0 address " MAC0 " type veth peer name old1 address " MAC1);
}

static struct net_prefix prefix(const char *text)
{
	struct net_prefix p;
	assert_int_equal(net_prefix_parse(text, &p), 0);
	return p;
}

static struct net_ip address(const char *text)
{
	return prefix(text).ip;
}

static void fill(struct net *n)
{
	static const struct {
		const char *to, *via, *from;
		uint32_t table, metric, mtu;
		bool link, onlink;
	} routes[] = {
		{ "192.0.2.1/32", NULL, NULL, 254, 0, 0, true, false },
		{ "198.51.100.0/24", NULL, "192.0.2.2", 100, 7, 1300, true, false },
		{ "203.0.113.0/24", "198.18.0.1", NULL, 254, 0, 0, false, true },
		{ "0.0.0.0/0", "192.0.2.1", NULL, 254, 0, 1400, false, false },
		{ "::/0", "2001:db8::1", NULL, 254, 1024, 0, false, false },
	};
	struct net_interface *i = &n->interfaces[n->n_interfaces++];
	snprintf(i->name, sizeof(i->name), "eth0");
	net_mac_parse(MAC0, i->mac);
	i->mtu = 1450;
	i->addresses[i->n_addresses++] = prefix("192.0.2.2/24");
	i->addresses[i->n_addresses++] = prefix("198.51.100.2/32");
	i->addresses[i->n_addresses++] = prefix("2001:db8::2/64");
	for (size_t k = 0; k < ARRAY_SIZE(routes); k++) {
		struct net_route *r = &i->routes[i->n_routes++];
		*r = (struct net_route){ .to = prefix(routes[k].to),
					 .table = routes[k].table,
					 .metric = routes[k].metric,
					 .mtu = routes[k].mtu,
					 .link = routes[k].link,
					 .onlink = routes[k].onlink };
		if (routes[k].via)
			r->via = address(routes[k].via);
		if (routes[k].from)
			r->from = address(routes[k].from);
	}
	n->rules[n->n_rules++] =
		(struct net_rule){ .from = prefix("192.0.2.2/32"), .table = 100, .priority = 50 };
	n->rules[n->n_rules++] =
		(struct net_rule){ .to = prefix("2001:db8::/32"), .table = 254, .priority = 51 };
}

static bool has_route(const struct net_interface *i, const struct net_route *r)
{
	for (size_t k = 0; k < i->n_routes; k++)
		if (memcmp(&i->routes[k], r, sizeof(*r)) == 0)
			return true;
	return false;
}

static void compare(const struct net *want, const struct net *got)
{
	const struct net_interface *a = &want->interfaces[0], *b = &got->interfaces[0];
	assert_int_equal(got->n_interfaces, 1);
	assert_string_equal(a->name, b->name);
	assert_memory_equal(a->mac, b->mac, NET_MAC_LEN);
	assert_int_equal(a->mtu, b->mtu);
	assert_int_equal(a->n_addresses, b->n_addresses);
	assert_memory_equal(a->addresses, b->addresses, a->n_addresses * sizeof(a->addresses[0]));
	assert_int_equal(a->n_routes, b->n_routes);
	for (size_t k = 0; k < a->n_routes; k++)
		if (!has_route(b, &a->routes[k]))
			fail_msg("route %zu", k);
	assert_int_equal(want->n_rules, got->n_rules);
	assert_memory_equal(want->rules, got->rules, want->n_rules * sizeof(want->rules[0]));
}

/* What is advertised to it changes nothing. */
static void check_ignores_routers(void)
{
	static const char *const files[] = { "/proc/sys/net/ipv6/conf/eth0/accept_ra",
					     "/proc/sys/net/ipv6/conf/eth0/autoconf" };
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_free char *text = NULL;
		size_t len;
		assert_int_equal(file_read_path(files[i], 16, &text, &len), 0);
		assert_string_equal(text, "0\n");
	}
}

static void round_trip(void)
{
	struct err e = ERR_INIT;
	struct net *want = calloc(1, sizeof(*want)), *got = calloc(1, sizeof(*got));
	make_interfaces();
	fill(want);
	if (net_configure(want, &e) < 0 || net_scan(got, &e) < 0)
		fail_msg("%s", e.text);
	compare(want, got);
	check_ignores_routers();
	/* Once more from what was read, as a pod's agent does it elsewhere. */
	own_net_ip("link set eth0 down");
	own_net_ip("address flush dev eth0");
	own_net_ip("rule del priority 50");
	own_net_ip("-6 rule del priority 51");
	if (net_configure(got, &e) < 0)
		fail_msg("%s", e.text);
	free(want);
	free(got);
}

static void test_round_trip(void **state)
{
	(void)state;
	own_net_call(round_trip);
}

/* Each gets the name that the other one has. */
static void swap(void)
{
	struct err e = ERR_INIT;
	struct net *want = calloc(1, sizeof(*want)), *got = calloc(1, sizeof(*got));
	make_interfaces();
	for (size_t i = 0; i < 2; i++) {
		struct net_interface *to = &want->interfaces[want->n_interfaces++];
		snprintf(to->name, sizeof(to->name), "old%zu", 1 - i);
		net_mac_parse(i == 0 ? MAC0 : MAC1, to->mac);
		to->mtu = 1400;
	}
	if (net_configure(want, &e) < 0 || net_scan(got, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(got->n_interfaces, 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			got->interfaces[i].name,
			memcmp(got->interfaces[i].mac, want->interfaces[0].mac, NET_MAC_LEN) == 0
				? "old1"
				: "old0");
	free(want);
	free(got);
}

static void test_names_that_are_taken(void **state)
{
	(void)state;
	own_net_call(swap);
}

static void refuse(void)
{
	struct err e = ERR_INIT;
	struct net *n = calloc(1, sizeof(*n));
	make_interfaces();
	fill(n);
	n->interfaces[0].mac[5] ^= 0x80;
	assert_int_equal(net_configure(n, &e), -ENODEV);
	assert_string_equal(e.text, "interface \"eth0\": no device has the address "
				    "02:00:5e:00:53:81");
	n->interfaces[0].mac[5] ^= 0x80;
	n->interfaces[0].routes[3].via = address("198.18.0.9");
	assert_true(net_configure(n, &e) < 0);
	assert_non_null(strstr(e.text, "interface \"eth0\": route to 0.0.0.0/0: "));
	free(n);
}

static void test_refused(void **state)
{
	(void)state;
	own_net_call(refuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_names_that_are_taken),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
