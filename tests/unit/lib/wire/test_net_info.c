/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/net_info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define RKT_FILE                                                                          \
	"[{\"netName\":\"default\",\"netConf\":\"net/99-default.conf\","                  \
	"\"pluginPath\":\"/usr/lib/rkt/ptp\",\"ifName\":\"eth0\",\"ip\":\"172.16.28.2\"," \
	"\"args\":\"\",\"mask\":\"255.255.255.0\"}]"

static struct net_info_list list, again;

static int parse(const char *text)
{
	return net_info_parse(text, strlen(text), &list);
}

/* The longest entry that there can be: every byte of its texts is escaped in JSON. */
static void fill(struct net_info *info)
{
	memset(info, 0, sizeof(*info));
	memset(info->net_name, 'n', sizeof(info->net_name) - 1);
	memset(info->net_conf, '"', sizeof(info->net_conf) - 1);
	memset(info->plugin_path, '\\', sizeof(info->plugin_path) - 1);
	memset(info->args, '"', sizeof(info->args) - 1);
	memset(info->if_name, '"', sizeof(info->if_name) - 1);
	assert_int_equal(str_copy(info->ip, sizeof(info->ip), "255.255.255.255"), 0);
	assert_int_equal(str_copy(info->mask, sizeof(info->mask), "255.255.255.255"), 0);
	assert_int_equal(str_copy(info->mac, sizeof(info->mac), "02:00:5e:00:53:01"), 0);
	info->n_ips = NET_ADDRESSES_MAX;
	for (size_t i = 0; i < info->n_ips; i++)
		assert_int_equal(str_copy(info->ips[i], sizeof(info->ips[i]),
					  "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128"),
				 0);
}

static void test_rkt(void **state)
{
	(void)state;
	assert_int_equal(parse(RKT_FILE), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.nets[0].net_name, "default");
	assert_string_equal(list.nets[0].net_conf, "net/99-default.conf");
	assert_string_equal(list.nets[0].plugin_path, "/usr/lib/rkt/ptp");
	assert_string_equal(list.nets[0].if_name, "eth0");
	assert_string_equal(list.nets[0].ip, "172.16.28.2");
	assert_string_equal(list.nets[0].mask, "255.255.255.0");
	assert_string_equal(list.nets[0].args, "");
	assert_string_equal(list.nets[0].mac, "");
	assert_int_equal(list.nets[0].n_ips, 0);
}

static void test_largest(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	buf_init(&out, NET_INFO_FILE_MAX);
	memset(&list, 0, sizeof(list));
	for (; list.n < NET_INTERFACES_MAX; list.n++)
		fill(&list.nets[list.n]);
	assert_int_equal(net_info_format(&list, &out), 0);
	assert_int_equal(net_info_parse(buf_data(&out), buf_len(&out), &again), 0);
	assert_memory_equal(&list, &again, sizeof(list));
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"{}",
		"[1]",
		"[{}]",
		"[[]]",
		"[{\"netName\":\"a\"}]",
		"[{\"ifName\":\"a\"}]",
		"[{\"netName\":1,\"ifName\":\"eth0\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"sixteen-letters-\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ip\":\"1.2.3\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"mask\":\"24\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"args\":\"a\\u001b[m\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":\"10.0.0.1/8\"}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[8]}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[\"10.0.0.1\"]}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[\"10.0.0.1/33\"]}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[\"::1/129\"]}]",
		"[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[\"/8\"]}]",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i]), -EBADMSG);
	assert_int_equal(parse("[]"), 0);
	assert_int_equal(list.n, 0);
}

static void test_limits(void **state)
{
	(void)state;
	static char text[NET_INFO_FILE_MAX + 2];
	size_t len = 0;
	memset(text, ' ', sizeof(text));
	text[0] = '[';
	text[NET_INFO_FILE_MAX - 1] = ']';
	assert_int_equal(net_info_parse(text, NET_INFO_FILE_MAX, &list), 0);
	assert_int_equal(net_info_parse(text, NET_INFO_FILE_MAX + 1, &list), -EBADMSG);
	for (size_t n = NET_INTERFACES_MAX; n <= NET_INTERFACES_MAX + 1; n++) {
		len = (size_t)snprintf(text, sizeof(text), "[");
		for (size_t i = 0; i < n; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s{\"netName\":\"a\",\"ifName\":\"b\"}",
						i > 0 ? "," : "");
		text[len++] = ']';
		assert_int_equal(net_info_parse(text, len, &list),
				 n > NET_INTERFACES_MAX ? -EBADMSG : 0);
	}
}

static void test_unfit(void **state)
{
	(void)state;
	cleanup_buf struct buf out;
	buf_init(&out, NET_INFO_FILE_MAX);
	assert_int_equal(parse(RKT_FILE), 0);
	list.nets[0].args[0] = '\n';
	assert_int_equal(net_info_format(&list, &out), -EINVAL);
	assert_int_equal(parse(RKT_FILE), 0);
	list.nets[0].if_name[0] = '\0';
	assert_int_equal(net_info_format(&list, &out), -EINVAL);
	assert_int_equal(buf_len(&out), 0);
}

static int round_trip(void *ctx)
{
	(void)ctx;
	cleanup_buf struct buf out;
	buf_init(&out, NET_INFO_FILE_MAX);
	int r = parse(RKT_FILE);
	return r < 0 ? r : net_info_format(&list, &out);
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(round_trip, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_rkt),    fixture_test(test_largest), fixture_test(test_refused),
		fixture_test(test_limits), fixture_test(test_unfit),   fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
