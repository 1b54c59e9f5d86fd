/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static const struct net_info *choose(const char *first, const char *second)
{
	static struct net_info info;
	info = (struct net_info){ .n_ips = (first != NULL) + (second != NULL) };
	if (first)
		strcpy(info.ips[0], first);
	if (second)
		strcpy(info.ips[1], second);
	info_choose_ip(&info);
	return &info;
}

static void test_choose_ip(void **state)
{
	(void)state;
	assert_string_equal(choose(NULL, NULL)->ip, "");
	assert_string_equal(choose("2001:db8::1/64", NULL)->ip, "2001:db8::1");
	assert_string_equal(choose("2001:db8::1/64", NULL)->mask, "");
	assert_string_equal(choose("2001:db8::1/64", "192.0.2.1/25")->ip, "192.0.2.1");
	assert_string_equal(choose("192.0.2.1/25", "192.0.2.2/24")->mask, "255.255.255.128");
	assert_string_equal(choose("192.0.2.1/32", NULL)->mask, "255.255.255.255");
	assert_string_equal(choose("192.0.2.1/0", NULL)->mask, "0.0.0.0");
}

static void add_interface(struct net *n, const char *name, const char *address)
{
	struct net_interface *i = &n->interfaces[n->n_interfaces++];
	strcpy(i->name, name);
	i->mac[0] = 2;
	i->n_addresses = 1;
	assert_int_equal(net_prefix_parse(address, &i->addresses[0]), 0);
}

/* What is known of a namespace of somebody else's, as it is written, and read again. */
static void test_interfaces(void **state)
{
	int dir = fixture_dir(state);
	struct err e = ERR_INIT;
	struct net *n = calloc(1, sizeof(*n));
	struct net_info_list *list = calloc(1, sizeof(*list)), *back = calloc(1, sizeof(*back));
	char *text = NULL;
	size_t len = 0;
	add_interface(n, "lan", "192.0.2.7/24");
	add_interface(n, "wan", "2001:db8::7/64");
	info_of_interfaces(n, list);
	assert_int_equal(info_write(dir, list, &e), 0);
	assert_int_equal(file_read_at(dir, POD_FILE_NET_INFO, NET_INFO_FILE_MAX, &text, &len), 0);
	assert_int_equal(net_info_parse(text, len, back), 0);
	assert_int_equal(back->n, 2);
	assert_string_equal(back->nets[0].net_name, "lan");
	assert_string_equal(back->nets[0].if_name, "lan");
	assert_string_equal(back->nets[0].mac, "02:00:00:00:00:00");
	assert_string_equal(back->nets[0].ips[0], "192.0.2.7/24");
	assert_string_equal(back->nets[1].ip, "2001:db8::7");
	assert_int_equal(info_remove(dir, &e), 0);
	assert_int_equal(faccessat(dir, POD_FILE_NET_INFO, F_OK, 0), -1);
	assert_int_equal(info_remove(dir, &e), 0); /* once is enough */
	free(text);
	free(back);
	free(list);
	free(n);
}

static void test_failures(void **state)
{
	int dir = fixture_dir(state);
	struct err e = ERR_INIT;
	struct net_info_list *list = calloc(1, sizeof(*list));
	list->n = 1; /* without a name */
	assert_int_equal(info_write(dir, list, &e), -EINVAL);
	assert_int_equal(mkdirat(dir, POD_FILE_NET_INFO, 0700), 0);
	assert_int_equal(info_remove(dir, &e), -EISDIR);
	assert_non_null(strstr(e.text, POD_FILE_NET_INFO));
	assert_int_equal(unlinkat(dir, POD_FILE_NET_INFO, AT_REMOVEDIR), 0);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose_ip),
		fixture_test(test_interfaces),
		fixture_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
