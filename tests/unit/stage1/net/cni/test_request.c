/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define LIST                                                                                   \
	"{\"name\":\"n\",\"cniVersion\":\"0.4.0\",\"plugins\":["                               \
	"{\"type\":\"a\",\"name\":\"other\",\"x\":{\"y\":1},\"capabilities\":{\"ips\":true}}," \
	"{\"type\":\"b\",\"capabilities\":{\"portMappings\":true,\"dns\":true,\"mac\":false,"  \
	"\"bandwidth\":true}},{\"type\":\"c\"}]}"

static struct cni_attachment a;

static struct err e;

static int begin(const char *args)
{
	struct pod_port v[] = {
		{ .port = 80, .host_port = 8080, .host_ip = "127.0.0.1" },
		{ .protocol = PORT_UDP, .port = 53, .host_port = 5353 },
	};
	const struct pod_ports ports = { v, ARRAY_SIZE(v) };
	struct net_dns dns;
	cni_attachment_init(&a);
	net_dns_init(&dns);
	int r = cni_config_parse(LIST, strlen(LIST), &a.config, NULL);
	if (r == 0)
		r = strv_add(&dns.nameservers, "10.0.0.1");
	if (r == 0)
		r = str_copy(a.args, sizeof(a.args), args);
	if (r == 0)
		r = str_copy(a.if_name, sizeof(a.if_name), "eth0");
	if (r == 0)
		r = cni_request_runtime(&ports, &dns, args, &a.runtime, &e);
	net_dns_deinit(&dns);
	return r;
}

static void check_document(size_t i, bool with_result, const char *want)
{
	cleanup_buf struct buf out;
	buf_init(&out, CNI_REQUEST_MAX);
	assert_int_equal(cni_request_document(&a, i, with_result, &out), 0);
	cleanup_free char *text = buf_take_string(&out);
	assert_string_equal(text, want);
}

static void test_documents(void **state)
{
	(void)state;
	assert_int_equal(begin("IP=fd00::2/64;MAC=02:00:5e:00:53:01"), 0);
	a.result = json_make("cniVersion", json_object_new_string("0.4.0"), NULL);
	check_document(0, false,
		       "{\"type\":\"a\",\"name\":\"n\",\"x\":{\"y\":1},\"cniVersion\":\"0.4.0\","
		       "\"runtimeConfig\":{\"ips\":[\"fd00::2/64\"]}}");
	check_document(1, true,
		       "{\"type\":\"b\",\"name\":\"n\",\"cniVersion\":\"0.4.0\",\"runtimeConfig\":{"
		       "\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":"
		       "\"tcp\",\"hostIP\":\"127.0.0.1\"},{\"hostPort\":5353,\"containerPort\":53,"
		       "\"protocol\":\"udp\"}],\"dns\":{\"servers\":[\"10.0.0.1\"],\"searches\":[],"
		       "\"options\":[]}},\"prevResult\":{\"cniVersion\":\"0.4.0\"}}");
	check_document(2, true,
		       "{\"type\":\"c\",\"name\":\"n\",\"cniVersion\":\"0.4.0\","
		       "\"prevResult\":{\"cniVersion\":\"0.4.0\"}}");
	cni_attachment_deinit(&a);
}

static void check_rates(const char *args, const char *want)
{
	cleanup_json struct json_object *runtime = NULL;
	assert_int_equal(cni_request_runtime(NULL, NULL, args, &runtime, &e), 0);
	assert_string_equal(json_object_to_json_string_ext(json_member(runtime, "bandwidth"),
							   JSON_C_TO_STRING_PLAIN),
			    want);
}

static void test_rates(void **state)
{
	static const char *const bad[] = { "999", "1000001M", "x", "10Mbit", "-1k" };
	struct json_object *none = NULL;
	char args[64], want[128];
	(void)state;
	check_rates("INGRESS_RATE=100M", "{\"ingressRate\":100000000,\"ingressBurst\":10000000}");
	check_rates("EGRESS_RATE=1k;INGRESS_RATE=1T",
		    "{\"ingressRate\":1000000000000,\"ingressBurst\":100000000000,"
		    "\"egressRate\":1000,\"egressBurst\":1048576}");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(args, sizeof(args), "EGRESS_RATE=%s", bad[i]);
		snprintf(want, sizeof(want),
			 "%s: bits per second are 1k to 1T, such as EGRESS_RATE=10M", args);
		assert_int_equal(cni_request_runtime(NULL, NULL, args, &none, &e), -EINVAL);
		assert_string_equal(e.text, want);
	}
	assert_null(none);
}

static void check_env(const char *args, const char *want)
{
	cleanup_strv struct strv env;
	cleanup_strv struct strv dirs;
	strv_init(&env, CNI_ENV_MAX);
	strv_init(&dirs, 2);
	assert_int_equal(begin(args), 0);
	assert_int_equal(strv_add(&dirs, "/a") | strv_add(&dirs, "/b"), 0);
	assert_int_equal(cni_request_env(&a, "ADD", "uuid", "/run/ns", &dirs, &env), 0);
	assert_int_equal(env.n, 7);
	assert_string_equal(strv_env_get(&env, "CNI_COMMAND"), "ADD");
	assert_string_equal(strv_env_get(&env, "CNI_CONTAINERID"), "uuid");
	assert_string_equal(strv_env_get(&env, "CNI_NETNS"), "/run/ns");
	assert_string_equal(strv_env_get(&env, "CNI_IFNAME"), "eth0");
	assert_string_equal(strv_env_get(&env, "CNI_PATH"), "/a:/b");
	assert_string_equal(strv_env_get(&env, "CNI_ARGS"), want);
	assert_non_null(strv_env_get(&env, "PATH"));
	cni_attachment_deinit(&a);
}

static void test_env(void **state)
{
	(void)state;
	check_env("", "");
	check_env("IP=10.0.0.1", "IgnoreUnknown=1;IP=10.0.0.1");
	check_env("IP=10.0.0.1;IgnoreUnknown=0", "IP=10.0.0.1;IgnoreUnknown=0");
}

static void test_nothing(void **state)
{
	struct json_object *runtime = (struct json_object *)&a;
	(void)state;
	assert_int_equal(cni_request_runtime(NULL, NULL, "", &runtime, &e), 0);
	assert_null(runtime);
	assert_int_equal(cni_request_runtime(NULL, NULL, "IP=;OTHER=x", &runtime, &e), 0);
	assert_null(runtime);
}

static void test_args(void **state)
{
	static const char *const good[] = { "A=", "A=b", "A_1=b c;D=e=f", "IP=fd00::1/64" };
	static const char *const bad[] = {
		"", "A", "=b", "A=b;", ";", "A B=c", "A=b;;C=d", "A=\n"
	};
	char value[4];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(cni_args_are_valid(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(cni_args_are_valid(bad[i]));
	assert_true(cni_args_get("XA=1;A=234;A=5", "A", value, sizeof(value)));
	assert_string_equal(value, "234");
	assert_false(cni_args_get("A=2345", "A", value, sizeof(value)));
	assert_false(cni_args_get("XA=1;AX=2", "A", value, sizeof(value)));
}

static int make_all(void *ctx)
{
	cleanup_buf struct buf out;
	(void)ctx;
	buf_init(&out, CNI_REQUEST_MAX);
	int r = begin("IP=10.1.0.2;MAC=x");
	if (r == 0)
		r = cni_request_document(&a, 1, true, &out);
	cni_attachment_deinit(&a);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(make_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_documents), fixture_test(test_rates),
		fixture_test(test_env),       fixture_test(test_nothing),
		fixture_test(test_args),      fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
