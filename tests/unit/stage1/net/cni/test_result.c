/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

/* As the plugin ptp says it. */
#define RESULT(version, ip_version)                                                        \
	"{\"cniVersion\":\"" version "\",\"interfaces\":["                                 \
	"{\"name\":\"eth0\",\"mac\":\"36:96:a2:a4:09:44\"},"                               \
	"{\"name\":\"eth0\",\"mac\":\"ee:a8:72:92:8e:80\",\"sandbox\":\"/run/netns/x\"}]," \
	"\"ips\":[{" ip_version "\"interface\":1,\"address\":\"172.30.28.2/24\","          \
	"\"gateway\":\"172.30.28.1\"},{\"interface\":0,\"address\":\"10.0.0.1/8\"},"       \
	"{\"address\":\"fd00::2/64\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}],"              \
	"\"dns\":{\"nameservers\":[\"10.0.0.1\"],\"domain\":\"example.com\","              \
	"\"search\":[\"a\",\"b\"],\"options\":[\"ndots:2\"]}}"

static struct cni_result res;
static struct err e;

static int parse(const char *text, const char *version)
{
	cni_result_deinit(&res);
	e = ERR_INIT;
	return cni_result_parse(text, strlen(text), version, "eth0", &res, &e);
}

static void check_result(void)
{
	assert_int_equal(res.n_ips, 2);
	assert_string_equal(res.ips[0], "172.30.28.2/24");
	assert_string_equal(res.ips[1], "fd00::2/64");
	assert_string_equal(res.mac, "ee:a8:72:92:8e:80");
	assert_string_equal(res.dns.nameservers.v[0], "10.0.0.1");
	assert_string_equal(res.dns.domain, "example.com");
	assert_int_equal(res.dns.search.n, 2);
	assert_string_equal(res.dns.options.v[0], "ndots:2");
	cni_result_deinit(&res);
}

static void test_versions(void **state)
{
	(void)state;
	assert_int_equal(parse(RESULT("0.3.1", "\"version\":\"4\","), "0.3.1"), 0);
	check_result();
	assert_int_equal(parse(RESULT("0.4.0", "\"version\":\"4\","), "0.4.0"), 0);
	check_result();
	assert_int_equal(parse(RESULT("1.0.0", ""), "1.0.0"), 0);
	check_result();
	assert_int_equal(parse(RESULT("1.0.0", ""), "0.4.0"), -EBADMSG);
	assert_int_equal(parse("{}", "1.0.0"), 0);
	assert_string_equal(json_object_get_string(json_member(res.doc, "cniVersion")), "1.0.0");
	cni_result_deinit(&res);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *field;
	} bad[] = {
		{ "{\"cniVersion\":1}", "\"cniVersion\"" },
		{ "{\"interfaces\":{}}", "\"interfaces\"" },
		{ "{\"interfaces\":[1]}", "\"interfaces\"" },
		{ "{\"interfaces\":[{}]}", "\"interfaces\"" },
		{ "{\"interfaces\":[{\"name\":\"sixteen-letters-\"}]}", "\"interfaces\"" },
		{ "{\"interfaces\":[{\"name\":\"a\",\"mac\":7}]}", "\"interfaces.mac\"" },
		{ "{\"interfaces\":[{\"name\":\"a\",\"mac\":\"\\u001b\"}]}", "\"interfaces.mac\"" },
		{ "{\"interfaces\":[{\"name\":\"a\",\"sandbox\":[]}]}", "\"interfaces.sandbox\"" },
		{ "{\"ips\":\"10.0.0.1/8\"}", "\"ips\"" },
		{ "{\"ips\":[{}]}", "\"ips.address\"" },
		{ "{\"ips\":[{\"address\":\"10.0.0.1\"}]}", "\"ips.address\"" },
		{ "{\"ips\":[{\"address\":\"10.0.0.1/33\"}]}", "\"ips.address\"" },
		{ "{\"ips\":[{\"address\":8}]}", "\"ips.address\"" },
		{ "{\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":0}]}", "\"ips.interface\"" },
		{ "{\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":-1}]}",
		  "\"ips.interface\"" },
		{ "{\"ips\":[{\"address\":\"10.0.0.1/8\",\"gateway\":\"x\"}]}", "\"ips.gateway\"" },
		{ "{\"routes\":[{}]}", "\"routes.dst\"" },
		{ "{\"routes\":[{\"dst\":\"10.0.0.0/8\",\"gw\":1}]}", "\"routes.gw\"" },
		{ "{\"dns\":[]}", "\"dns\"" },
		{ "{\"dns\":{\"domain\":\"a b\"}}", "\"dns\"" },
		{ "{\"dns\":{\"nameservers\":[\"x\"]}}", "\"dns\"" },
		{ "{\"dns\":{\"search\":\"x\"}}", "\"dns\"" },
		{ "{\"dns\":{\"options\":[\"\\n\"]}}", "\"dns\"" },
		{ "{\"rate\":0.5}", "floating" },
		{ "[]", "object" },
		{ "hello", "JSON" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse(bad[i].text, "1.0.0"), -EBADMSG);
		assert_non_null(strstr(e.text, bad[i].field));
	}
}

/* {"KEY":[MEMBER,...]} with @n members. */
static int parse_list(const char *key, const char *member, size_t n)
{
	static char text[16384];
	size_t len = (size_t)snprintf(text, sizeof(text), "{%s[", key);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? "," : "",
					member);
	snprintf(text + len, sizeof(text) - len, "]%s", strstr(key, "dns") ? "}}" : "}");
	int r = parse(text, "1.0.0");
	cni_result_deinit(&res);
	return r;
}

static void test_limits(void **state)
{
	static const struct {
		const char *key, *member;
		size_t max;
	} cases[] = {
		{ "\"ips\":", "{\"address\":\"10.0.0.1/8\"}", NET_ADDRESSES_MAX },
		{ "\"routes\":", "{\"dst\":\"10.0.0.0/8\"}", NET_ROUTES_MAX },
		{ "\"interfaces\":", "{\"name\":\"a\"}", 32 },
		{ "\"dns\":{\"search\":", "\"a\"", NET_DNS_LIST_MAX },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse_list(cases[i].key, cases[i].member, cases[i].max), 0);
		assert_int_equal(parse_list(cases[i].key, cases[i].member, cases[i].max + 1),
				 -EBADMSG);
	}
}

static int parse_error(const char *text, char out[CNI_MESSAGE_MAX])
{
	return cni_error_parse(text, strlen(text), out);
}

static void test_errors(void **state)
{
	char out[CNI_MESSAGE_MAX], text[2 * CNI_MESSAGE_MAX];
	(void)state;
	assert_int_equal(
		parse_error("{\"code\":7,\"msg\":\"no\\u001b way\",\"details\":\"a\\nb\"}", out),
		0);
	assert_string_equal(out, "no? way; a?b");
	assert_int_equal(parse_error("{\"msg\":\"m\"}", out), 0);
	assert_string_equal(out, "m");
	assert_int_equal(parse_error("{\"code\":7}", out), -EBADMSG);
	assert_int_equal(parse_error("{\"msg\":7}", out), -EBADMSG);
	assert_int_equal(parse_error("no", out), -EBADMSG);
	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"msg\":\"", 8);
	memcpy(text + sizeof(text) - 3, "\"}", 3);
	assert_int_equal(parse_error(text, out), 0);
	assert_int_equal(strlen(out), CNI_MESSAGE_MAX / 2);
}

static int parse_one(void *ctx)
{
	int r = parse(ctx, "1.0.0");
	cni_result_deinit(&res);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	char text[] = RESULT("1.0.0", "");
	for_each_failing_alloc(parse_one, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_versions),  fixture_test(test_refused),
		fixture_test(test_limits),    fixture_test(test_errors),
		fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
