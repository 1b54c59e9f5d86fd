/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/choose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static struct cni_networks nets;
static struct cni_attachments list;
static struct err e;

/* Adds the network @name of the file net.d/@file. */
static void add(const char *file, const char *name, size_t layer, const char *broken)
{
	char text[512];
	struct cni_config c = { .name = "" };
	int n = snprintf(text, sizeof(text), "{\"name\":\"%s\",\"type\":\"t\"}", name);
	assert_int_equal(cni_config_parse(text, (size_t)n, &c, NULL), *name ? 0 : -EBADMSG);
	snprintf(c.path, sizeof(c.path), "/net.d/%s", file);
	assert_int_equal(cni_networks_add(&nets, &c, layer, broken), 0);
}

static void begin(void)
{
	cni_networks_deinit(&nets);
	assert_int_equal(cni_networks_add_built_in(&nets), 0);
}

/* Understands "A,B" as two values of --net and chooses. */
static int choose(const char *values)
{
	CLEANUP(cni_choice_deinit) struct cni_choice c = { .v = NULL };
	cleanup_strv struct strv sv;
	char text[2048], *rest = text;
	strv_init(&sv, 16);
	assert_int_equal(str_copy(text, sizeof(text), values), 0);
	for (char *one; *values && (one = strsep(&rest, ","));)
		assert_int_equal(strv_add(&sv, one), 0);
	cni_attachments_deinit(&list);
	e = ERR_INIT;
	cni_networks_sort(&nets);
	int r = cni_choice_parse(&sv, &c, &e);
	return r < 0 ? r : cni_choose(&c, &nets, &list, &e);
}

/* What was chosen, as "NAME:ARGS=IF ...". */
static void check_list(const char *want)
{
	char text[1024] = "";
	size_t len = 0;
	for (size_t i = 0; i < list.n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%s=%s",
					i > 0 ? " " : "", list.v[i].config.name, list.v[i].args,
					list.v[i].if_name);
	assert_string_equal(text, want);
}

static void end(void)
{
	cni_attachments_deinit(&list);
	cni_networks_deinit(&nets);
}

static void check_refused(const char *values, int code, const char *text)
{
	assert_int_equal(choose(values), code);
	assert_string_equal(e.text, text);
	assert_int_equal(list.n, 0);
}

static void test_names(void **state)
{
	(void)state;
	begin();
	add("20-a.conf", "a", 1, NULL);
	add("10-b.conf", "b", 1, NULL);
	assert_int_equal(choose("a,b"), 0);
	check_list("b:=eth0 a:=eth1");
	assert_int_equal(choose("default,a:IP=10.0.0.1;X=y,b"), 0);
	check_list("b:=eth0 a:IP=10.0.0.1;X=y=eth1 default:=eth2");
	assert_int_equal(choose("default-restricted:"), 0);
	check_list("default-restricted:=eth0");
	assert_int_equal(choose("a:IP=fd00::2"), 0);
	check_list("a:IP=fd00::2=eth0");
	end();
}

static void test_special(void **state)
{
	(void)state;
	begin();
	add("20-a.conf", "a", 1, NULL);
	assert_int_equal(choose("all"), 0);
	check_list("a:=eth0 default:=eth1");
	assert_int_equal(choose("all,default-restricted:A=b"), 0);
	check_list("a:=eth0 default:=eth1 default-restricted:A=b=eth2");
	add("30-r.conf", "default-restricted", 1, NULL);
	assert_int_equal(choose("all"), 0);
	check_list("a:=eth0 default-restricted:=eth1");
	end();
}

/* rkt's words. */
static void test_refused(void **state)
{
	(void)state;
	begin();
	add("20-a.conf", "a", 1, NULL);
	check_refused("a,", -EINVAL, "netname must not be empty");
	check_refused(":A=b", -EINVAL, "netname must not be empty");
	check_refused("a,a", -EINVAL, "found duplicate netname \"a\"");
	check_refused("a:b:c", -EINVAL, "network \"a\" provided with invalid arguments: [b c]");
	check_refused("a:b", -EINVAL, "network \"a\" provided with invalid arguments: [b]");
	check_refused("all:A=b", -EINVAL, "arguments are not supported by special netname \"all\"");
	check_refused("b,a,c", -ENOENT, "networks not found: b, c");
	check_refused("none,a,host", -ENOENT, "networks not found: none, host");
	check_refused("../x", -EINVAL,
		      "netname \"../x\" is not one of letters, digits and \"_.-\"");
	end();
}

static void test_overrides(void **state)
{
	(void)state;
	begin();
	add("10-a.conf", "a", 1, NULL);
	add("11-a.conf", "a", 1, NULL); /* the first file of a directory counts */
	assert_int_equal(choose("a"), 0);
	assert_string_equal(list.v[0].config.path, "/net.d/10-a.conf");
	add("50-a.conf", "a", 2, NULL);
	add("60-default.conf", "default", 2, NULL);
	assert_int_equal(choose("a,default"), 0);
	assert_string_equal(list.v[0].config.path, "/net.d/50-a.conf");
	assert_string_equal(list.v[1].config.path, "/net.d/60-default.conf");
	end();
}

/* A file that cannot be used matters to who might have meant it. */
static void test_broken(void **state)
{
	(void)state;
	begin();
	add("10-a.conf", "a", 2, NULL);
	add("10-b.conf", "b", 1, "\"b\": broken");
	assert_int_equal(choose("a,default"), 0);
	check_refused("b", -EBADMSG, "\"b\": broken");
	check_refused("all", -EBADMSG, "\"b\": broken");
	add("99-x.conf", "", 1, "\"x\": it is not JSON");
	assert_int_equal(choose("a"), 0);
	check_refused("default", -EBADMSG, "\"x\": it is not JSON");
	check_refused("y", -EBADMSG, "\"x\": it is not JSON");
	end();
}

static void test_limits(void **state)
{
	char name[32], values[2048] = "n0", args[CNI_ARGS_MAX + 16];
	(void)state;
	begin();
	for (size_t i = 0; i <= NET_INTERFACES_MAX; i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		add(name, name, 1, NULL);
	}
	for (size_t i = 1; i < NET_INTERFACES_MAX; i++)
		snprintf(values + strlen(values), sizeof(values) - strlen(values), ",n%zu", i);
	assert_int_equal(choose(values), 0);
	assert_int_equal(list.n, NET_INTERFACES_MAX);
	snprintf(values + strlen(values), sizeof(values) - strlen(values), ",n%d",
		 NET_INTERFACES_MAX);
	check_refused(values, -E2BIG, "a pod can be attached to at most 6 networks");
	for (size_t n = CNI_ARGS_MAX; n <= CNI_ARGS_MAX + 1; n++) {
		memset(args, 'x', sizeof(args));
		memcpy(args, "n0:A=", 5);
		args[3 + n] = '\0';
		assert_int_equal(choose(args), n > CNI_ARGS_MAX ? -EINVAL : 0);
	}
	for (size_t i = nets.n; i < CNI_NETWORKS_MAX; i++) {
		snprintf(name, sizeof(name), "m%zu", i);
		add(name, name, 1, NULL);
	}
	struct cni_config c = { .name = "last" };
	assert_int_equal(cni_networks_add(&nets, &c, 1, NULL), -E2BIG);
	end();
}

static int choose_two(void *ctx)
{
	(void)ctx;
	cni_networks_deinit(&nets);
	int r = cni_networks_add_built_in(&nets);
	CLEANUP(cni_choice_deinit) struct cni_choice c = { .v = NULL };
	cleanup_strv struct strv sv;
	strv_init(&sv, 1);
	if (r == 0)
		r = strv_add(&sv, "default:IP=10.0.0.1,default-restricted");
	if (r == 0)
		r = cni_choice_parse(&sv, &c, &e);
	if (r == 0)
		r = cni_choose(&c, &nets, &list, &e);
	end();
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(choose_two, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_names),     fixture_test(test_special),
		fixture_test(test_refused),   fixture_test(test_overrides),
		fixture_test(test_broken),    fixture_test(test_limits),
		fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
