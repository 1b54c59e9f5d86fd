/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "tests/support/fixture.h"

static struct net *net;

static int setup(void **state)
{
	(void)state;
	net = calloc(1, sizeof(*net));
	return net ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(net);
	return 0;
}

static int decode(const char *text)
{
	cleanup_json struct json_object *body = NULL;
	assert_int_equal(json_parse(text, strlen(text), &body), 0);
	return net_decode(body, net);
}

static char *encode(void)
{
	cleanup_json struct json_object *body = NULL;
	struct buf b;
	assert_int_equal(net_encode(net, &body), 0);
	buf_init(&b, 1 << 20);
	assert_int_equal(json_write(body, false, &b), 0);
	char *text = buf_take_string(&b);
	buf_deinit(&b);
	return text;
}

#define ETH0 "\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53:01\",\"mtu\":1500"

static void test_round_trip(void **state)
{
	(void)state;
	static const char text[] =
		"{\"interfaces\":[{" ETH0 ",\"addresses\":[\"192.0.2.2/24\",\"2001:db8::2/64\"],"
		"\"routes\":[{\"to\":\"192.0.2.1/32\",\"link\":true},"
		"{\"to\":\"0.0.0.0/0\",\"via\":\"192.0.2.1\",\"from\":\"192.0.2.2\",\"metric\":5,"
		"\"mtu\":1400},"
		"{\"to\":\"::/0\",\"via\":\"fe80::1\",\"table\":100,\"onlink\":true}]}],"
		"\"rules\":[{\"from\":\"192.0.2.2/32\",\"table\":100,\"priority\":9},"
		"{\"to\":\"2001:db8::/32\",\"table\":4294967295,\"priority\":4294967295}]}";
	assert_int_equal(decode(text), 0);
	assert_int_equal(net->n_interfaces, 1);
	assert_int_equal(net->interfaces[0].n_addresses, 2);
	assert_int_equal(net->interfaces[0].n_routes, 3);
	assert_int_equal(net->interfaces[0].routes[0].table, 254);
	assert_int_equal(net->n_rules, 2);
	cleanup_free char *back = encode();
	assert_string_equal(back, text);
}

static void test_nothing(void **state)
{
	(void)state;
	assert_int_equal(decode("{}"), 0);
	cleanup_free char *text = encode();
	assert_string_equal(text, "{\"interfaces\":[],\"rules\":[]}");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"[]",
		"{\"interfaces\":{}}",
		"{\"interfaces\":[1]}",
		"{\"interfaces\":[{}]}",
		"{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53:01\"}]}",
		"{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53:01\",\"mtu\":67}]}",
		"{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53:01\",\"mtu\":65536}]}",
		"{\"interfaces\":[{\"name\":\"eth/0\",\"mac\":\"02:00:5e:00:53:01\",\"mtu\":1500}]}",
		"{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"03:00:5e:00:53:01\",\"mtu\":1500}]}",
		"{\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53\",\"mtu\":1500}]}",
		"{\"interfaces\":[{" ETH0 ",\"addresses\":[1]}]}",
		"{\"interfaces\":[{" ETH0 ",\"addresses\":[\"192.0.2.2/33\"]}]}",
		"{\"interfaces\":[{" ETH0 ",\"addresses\":[\"::/129\"]}]}",
		"{\"interfaces\":[{" ETH0 ",\"addresses\":[\"192.0.2.2/24\\u0000\"]}]}",
		"{\"interfaces\":[{" ETH0 ",\"routes\":[{}]}]}",
		"{\"interfaces\":[{" ETH0
		",\"routes\":[{\"to\":\"::/0\",\"via\":\"192.0.2.1\"}]}]}",
		"{\"interfaces\":[{" ETH0
		",\"routes\":[{\"to\":\"::/0\",\"from\":\"192.0.2.1\"}]}]}",
		"{\"interfaces\":[{" ETH0 ",\"routes\":[{\"to\":\"::/0\",\"table\":-1}]}]}",
		"{\"interfaces\":[{" ETH0 ",\"routes\":[{\"to\":\"::/0\",\"table\":4294967296}]}]}",
		"{\"rules\":[{\"priority\":1}]}",
		"{\"rules\":[{\"table\":1,\"from\":\"::/0\",\"to\":\"0.0.0.0/0\"}]}",
		"{\"interfaces\":[{" ETH0 "},{\"name\":\"eth0\",\"mac\":\"02:00:5e:00:53:02\","
		"\"mtu\":1500}]}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = decode(bad[i]);
		if (r != -EBADMSG)
			fail_msg("%d: %s", r, bad[i]);
	}
}

/* All lists full, and one more of each. */
static void test_limits(void **state)
{
	(void)state;
	struct net_prefix p;
	assert_int_equal(net_prefix_parse("2001:db8:1111:2222:3333:4444:5555:6666/128", &p), 0);
	for (net->n_interfaces = 0; net->n_interfaces < NET_INTERFACES_MAX; net->n_interfaces++) {
		struct net_interface *i = &net->interfaces[net->n_interfaces];
		snprintf(i->name, sizeof(i->name), "interface-%zu", net->n_interfaces);
		i->mac[5] = (unsigned char)net->n_interfaces;
		i->mtu = NET_MTU_MAX;
		for (; i->n_addresses < NET_ADDRESSES_MAX; i->n_addresses++)
			i->addresses[i->n_addresses] = p;
		for (; i->n_routes < NET_ROUTES_MAX; i->n_routes++)
			i->routes[i->n_routes] = (struct net_route){
				.to = p, .via = p.ip, .from = p.ip, .table = 1, .onlink = true
			};
	}
	for (; net->n_rules < NET_RULES_MAX; net->n_rules++)
		net->rules[net->n_rules] = (struct net_rule){ .from = p, .table = 1 };
	cleanup_free char *text = encode();
	assert_int_equal(decode(text), 0);
	cleanup_free char *back = encode();
	assert_string_equal(back, text);

	cleanup_free char *more = malloc(strlen(text) + 256);
	static const struct {
		const char *list, *item;
	} lists[] = {
		{ "\"interfaces\":[",
		  "{\"name\":\"x\",\"mac\":\"02:00:00:00:00:99\",\"mtu\":1500}," },
		{ "\"addresses\":[", "\"192.0.2.1/32\"," },
		{ "\"routes\":[", "{\"to\":\"192.0.2.1/32\"}," },
		{ "\"rules\":[", "{\"table\":1}," },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const char *at = strstr(text, lists[i].list) + strlen(lists[i].list);
		sprintf(more, "%.*s%s%s", (int)(at - text), text, lists[i].item, at);
		assert_int_equal(decode(more), -EBADMSG);
	}
}

static void test_addresses(void **state)
{
	(void)state;
	static const char *const good[] = { "192.0.2.1", "0.0.0.0", "2001:db8::1", "::" };
	static const char *const bad[] = {
		"",      "1",           "192.0.2.256", "192.0.2.1 ", "fe80::1%eth0",
		"[::1]", "192.0.2.1/8", "::1\n"
	};
	struct net_ip ip;
	struct net_prefix p;
	char text[NET_PREFIX_TEXT_MAX + 1];
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(net_ip_parse(good[i], &ip), 0);
		net_ip_format(&ip, text);
		assert_string_equal(text, good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(net_ip_parse(bad[i], &ip), -EINVAL);
	ip = (struct net_ip){ .family = AF_UNSPEC };
	net_ip_format(&ip, text);
	assert_string_equal(text, "");
	assert_int_equal(net_prefix_parse("192.0.2.1", &p), 0);
	net_prefix_format(&p, text);
	assert_string_equal(text, "192.0.2.1/32");
	assert_int_equal(net_prefix_parse("192.0.2.1/", &p), -EINVAL);
	assert_int_equal(net_prefix_parse("192.0.2.1/+1", &p), -EINVAL);
	assert_int_equal(net_prefix_parse("/8", &p), -EINVAL);
}

static void test_macs_and_names(void **state)
{
	(void)state;
	static const char *const bad[] = { "",
					   "02:00:5e:00:53",
					   "02-00-5e-00-53-01",
					   "02:00:5E:00:53:01",
					   "ff:ff:ff:ff:ff:ff",
					   "02:00:5e:00:53:011" };
	static const char *const names[] = { "",    ".",   "..",  "a b",
					     "a/b", "a:b", "a\n", "1234567890123456" };
	unsigned char mac[NET_MAC_LEN];
	char text[NET_MAC_TEXT_MAX + 1];
	assert_int_equal(net_mac_parse("02:00:5e:00:53:fe", mac), 0);
	net_mac_format(mac, text);
	assert_string_equal(text, "02:00:5e:00:53:fe");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(net_mac_parse(bad[i], mac), -EINVAL);
	assert_true(net_name_is_valid("123456789012345"));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_false(net_name_is_valid(names[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_macs_and_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
