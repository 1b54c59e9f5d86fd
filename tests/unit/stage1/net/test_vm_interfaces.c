/* SPDX-License-Identifier: Apache-2.0 */
/* What a VM can have of interfaces, and which is refused in which words. Needs root. */
#include "stage1/net/vm_interfaces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/net/scan.h"
#include "tests/support/fixture.h"
#include "tests/support/own_net.h"

#define MAC "02:00:5e:00:53:01"

static struct net net;
static struct net_info_list made;
static struct err e;

static int check(void)
{
	assert_int_equal(net_scan(&net, &e), 0);
	return vm_interfaces_check(&net, &made, &e);
}

static void add_network(const char *name, const char *if_name)
{
	struct net_info *info = &made.nets[made.n++];
	snprintf(info->net_name, sizeof(info->net_name), "%s", name);
	snprintf(info->if_name, sizeof(info->if_name), "%s", if_name);
}

static void look(void)
{
	e = ERR_INIT;
	add_network("x", "eth0");
	add_network("y", "eth1");
	add_network("z", "eth9"); /* its plugin makes none */
	own_net_ip("link add eth1 type veth peer name eth0");
	own_net_ip("link set eth0 up");
	own_net_ip("link set eth1 up");
	assert_int_equal(check(), 0);
	own_net_ip("link set eth0 address " MAC);
	own_net_ip("link set eth1 address " MAC);
	assert_int_equal(check(), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "interface \"eth0\" of network \"x\" and interface \"eth1\" of "
			    "network \"y\" have the same MAC address, by which a VM tells them "
			    "apart (give --stage1=ns, or another network)");
	own_net_ip("link set eth1 address 02:00:5e:00:53:02 arp off");
	assert_int_equal(check(), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "interface \"eth1\" of network \"y\" has no ARP, as of ipvlan in mode "
			    "l3 or l3s, without which a VM reaches nobody (give --stage1=ns, or "
			    "another network)");
	own_net_ip("link set eth1 down arp on");
	assert_int_equal(check(), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "interface \"eth1\" of network \"y\" is down, or not of Ethernet, as "
			    "of tun, and a VM cannot have it (give --stage1=ns, or another "
			    "network)");
	made.n = 0;
	own_net_ip("link set eth1 up arp off");
	assert_int_equal(check(), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "interface \"eth1\" has no ARP"));
}

static void test_refused(void **state)
{
	(void)state;
	own_net_call(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
