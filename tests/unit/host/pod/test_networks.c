/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/networks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define NET(name, rest) "{\"netName\":\"" name "\",\"ifName\":\"eth0\"" rest "}"

static int add(void *ctx, const char *net, bool is_ipv6, const char *ip)
{
	char *text = ctx;
	snprintf(text + strlen(text), 256 - strlen(text), "%s%d=%s ", net, is_ipv6 ? 6 : 4, ip);
	return strcmp(ip, "10.0.0.9") == 0 ? -EINTR : 0;
}

/* Of a network IPv4 first; of what rkt wrote its only one; nothing of what is no such file. */
static void test_read(void **state)
{
	static const struct {
		const char *file, *want;
	} cases[] = {
		{ NULL, "" },
		{ "", "" },
		{ "{}", "" },
		{ "[]", "" },
		{ "[" NET("a", "") "]", "" },
		{ "[" NET("a", ",\"ip\":\"10.0.0.1\"") "," NET("b", ",\"ip\":\"fd00::1\"") "]",
		  "a4=10.0.0.1 b6=fd00::1 " },
		{ "[" NET("a", ",\"ip\":\"10.0.0.1\",\"ips\":[\"fd00::1/64\",\"10.0.0.1/24\","
			       "\"10.0.0.2/24\"]") "]",
		  "a4=10.0.0.1 a4=10.0.0.2 a6=fd00::1 " },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free struct net_info_list *list = NULL;
		char text[256] = "";
		if (cases[i].file)
			fixture_write(state, POD_FILE_NET_INFO, cases[i].file,
				      strlen(cases[i].file));
		assert_int_equal(pod_networks_read(fixture_dir(state), &list), 0);
		assert_int_equal(pod_networks_each_ip(list, add, text), 0);
		assert_string_equal(text, cases[i].want);
	}
}

static void test_stop(void **state)
{
	static const char file[] =
		"[" NET("a", ",\"ip\":\"10.0.0.9\"") "," NET("b", ",\"ip\":\"10.0.0.1\"") "]";
	cleanup_free struct net_info_list *list = NULL;
	char text[256] = "";
	fixture_write(state, POD_FILE_NET_INFO, file, strlen(file));
	assert_int_equal(pod_networks_read(fixture_dir(state), &list), 0);
	assert_int_equal(pod_networks_each_ip(list, add, text), -EINTR);
	assert_string_equal(text, "a4=10.0.0.9 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_read),
		fixture_test(test_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
