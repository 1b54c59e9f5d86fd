/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_app_port(void **state)
{
	static const struct {
		const char *text, *name;
		enum port_protocol protocol;
		uint16_t port;
	} cases[] = {
		{ "80/tcp", "80-tcp", PORT_TCP, 80 }, { "53/udp", "53-udp", PORT_UDP, 53 },
		{ "1/sctp", "1-sctp", PORT_SCTP, 1 }, { "65535", "65535-tcp", PORT_TCP, 65535 },
		{ "080", "80-tcp", PORT_TCP, 80 },
	};
	static const char *const bad[] = { "",
					   "0",
					   "0/tcp",
					   "65536",
					   "80/",
					   "80/TCP",
					   "80/tcp ",
					   "8000-8010/tcp",
					   "/tcp",
					   "-1",
					   "11111111111111111111/tcp" };
	struct pod_port port = { .port = 7 };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(pod_port_parse(bad[i], &port), -EINVAL);
		assert_int_equal(port.port, 7);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(pod_port_parse(cases[i].text, &port), 0);
		assert_string_equal(port.name, cases[i].name);
		assert_int_equal(port.protocol, cases[i].protocol);
		assert_int_equal(port.port, cases[i].port);
		assert_int_equal(port.count, 1);
		assert_int_equal(port.host_port, 0);
	}
}

static void test_ip(void **state)
{
	struct pod_port port = { 0 };
	(void)state;
	assert_int_equal(pod_port_set_ip(&port, "127.0.0.1"), 0);
	assert_string_equal(port.host_ip, "127.0.0.1");
	assert_int_equal(pod_port_set_ip(&port, "2001:DB8:0::1"), 0);
	assert_string_equal(port.host_ip, "2001:db8::1");
	assert_int_equal(pod_port_set_ip(&port, ""), -EINVAL);
	assert_int_equal(pod_port_set_ip(&port, "[::1]"), -EINVAL);
	assert_int_equal(pod_port_set_ip(&port, "fe80::1%eth0"), -EINVAL);
	assert_int_equal(pod_port_set_ip(&port, "1.2.3"), -EINVAL);
}

/* Two ports, the second of the host's port 80. */
static void test_conflicts(void **state)
{
	static const struct {
		enum port_protocol protocol;
		uint16_t port, host_port;
		const char *ip, *other_ip, *error;
	} cases[] = {
		{ PORT_TCP, 1, 80, "", "", "port tcp-0.0.0.0:80 already mapped to pod port 1" },
		{ PORT_TCP, 1, 80, "", "::1", "port tcp-::1:80 already mapped to pod port 1" },
		{ PORT_TCP, 1, 80, "10.0.0.1", "0.0.0.0",
		  "port tcp-0.0.0.0:80 already mapped to pod port 1" },
		{ PORT_TCP, 1, 80, "::", "::1", "port tcp-::1:80 already mapped to pod port 1" },
		{ PORT_TCP, 1, 80, "0.0.0.0", "::", "" },
		{ PORT_TCP, 1, 80, "10.0.0.1", "10.0.0.2", "" },
		{ PORT_TCP, 1, 81, "", "", "" },
		{ PORT_UDP, 1, 80, "", "", "" },
		{ PORT_TCP, 0, 80, "", "", "" }, /* nobody knows yet */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		struct pod_port list[] = {
			{ .protocol = cases[i].protocol,
			  .port = cases[i].port,
			  .host_port = cases[i].host_port },
			{ .protocol = PORT_TCP, .port = 2, .host_port = 80 },
		};
		const struct pod_ports ports = { list, ARRAY_SIZE(list) };
		str_copy(list[0].host_ip, sizeof(list[0].host_ip), cases[i].ip);
		str_copy(list[1].host_ip, sizeof(list[1].host_ip), cases[i].other_ip);
		assert_int_equal(pod_ports_check(&ports, &e), *cases[i].error ? -EEXIST : 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

static int read_text(const char *text, bool of_pod, struct pod_ports *p, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	assert_int_equal(json_parse(text, strlen(text), &obj), 0);
	return of_pod ? pod_ports_read(obj, p, e) : app_ports_read(obj, p, e);
}

/* What is read is written as it was. */
static void test_round_trip(void **state)
{
	static const struct {
		bool of_pod;
		const char *text;
	} cases[] = {
		{ false, "{}" },
		{ false,
		  "{\"ports\":[{\"name\":\"http\",\"protocol\":\"tcp\",\"port\":80},{\"name\":"
		  "\"rtp\",\"protocol\":\"udp\",\"port\":65000,\"count\":536}]}" },
		{ true,
		  "{\"ports\":[{\"name\":\"a\",\"hostPort\":65535,\"hostIP\":\"::1\",\"podPort\":"
		  "{\"name\":\"a\",\"protocol\":\"sctp\",\"port\":1}},{\"name\":\"http\","
		  "\"hostPort\":1}]}" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 }, copy = { 0 };
		cleanup_json struct json_object *obj = json_object_new_object();
		struct err e = ERR_INIT;
		assert_int_equal(read_text(cases[i].text, cases[i].of_pod, &p, &e), 0);
		assert_int_equal(pod_ports_copy(&copy, &p), 0);
		assert_int_equal(cases[i].of_pod ? pod_ports_write(&copy, obj)
						 : app_ports_write(&copy, obj),
				 0);
		assert_string_equal(
			json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN |
								    JSON_C_TO_STRING_NOSLASHESCAPE),
			cases[i].text);
	}
	pod_ports_deinit(NULL);
}

#define APP_PORT(members) "{\"ports\":[{" members "}]}"
#define POD_PORT(members) "{\"ports\":[{\"name\":\"a\"," members "}]}"

static void test_refused(void **state)
{
	static const struct {
		bool of_pod;
		const char *text, *error;
	} cases[] = {
		{ false, "{\"ports\":{}}", "\"ports\" is not a list of at most 256 ports" },
		{ false, "{\"ports\":[1]}",
		  "\"ports\" member 0: \"name\" is not a name of a port (1 to 63 of a-z, 0-9 and "
		  "dashes inside)" },
		{ false, APP_PORT("\"name\":\"-a\""),
		  "\"ports\" member 0: \"name\" is not a name of a port (1 to 63 of a-z, 0-9 and "
		  "dashes inside)" },
		{ false, APP_PORT("\"name\":\"a\",\"protocol\":\"icmp\""),
		  "\"ports\" member 0: \"protocol\" is not tcp, udp or sctp" },
		{ false, APP_PORT("\"name\":\"a\",\"protocol\":\"tcp\",\"port\":65536"),
		  "\"ports\" member 0: \"port\" is not a number from 1 to 65535" },
		{ false, APP_PORT("\"name\":\"a\",\"protocol\":\"tcp\""),
		  "\"ports\" member 0: \"port\" is not a number from 1 to 65535" },
		{ false,
		  APP_PORT("\"name\":\"a\",\"protocol\":\"tcp\",\"port\":65000,\"count\":537"),
		  "\"ports\" member 0: \"count\" is not a number from 1 to 536" },
		{ true, POD_PORT("\"hostPort\":0"),
		  "\"ports\" member 0: \"hostPort\" is not a number from 1 to 65535" },
		{ true, POD_PORT("\"hostPort\":1,\"hostIP\":\"x\""),
		  "\"ports\" member 0: \"hostIP\" is not an address" },
		{ true, POD_PORT("\"hostPort\":1,\"podPort\":{\"name\":\"a\"}"),
		  "\"ports\" member 0: \"podPort\": \"protocol\" is not tcp, udp or sctp" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 };
		struct err e = ERR_INIT;
		assert_int_equal(read_text(cases[i].text, cases[i].of_pod, &p, &e), -EBADMSG);
		assert_string_equal(e.text, cases[i].error);
	}
}

static void test_limit(void **state)
{
	CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 }, twice = { 0 };
	const struct pod_port port = { .name = "a", .port = 1, .count = 1 };
	(void)state;
	for (size_t i = 0; i < POD_PORTS_MAX; i++)
		assert_int_equal(pod_ports_add(&p, &port), 0);
	assert_int_equal(pod_ports_add(&p, &port), -E2BIG);
	assert_int_equal(pod_ports_copy(&twice, &p), 0);
	assert_int_equal(pod_ports_copy(&twice, &p), -E2BIG);
	assert_int_equal(twice.n, POD_PORTS_MAX);
}

static int write_out_of_memory(void *arg)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	return obj ? pod_ports_write(arg, obj) : -ENOMEM;
}

static void test_out_of_memory(void **state)
{
	struct pod_port port = {
		.name = "a", .port = 1, .count = 2, .host_port = 3, .host_ip = "::1"
	};
	struct pod_ports ports = { &port, 1 };
	(void)state;
	for_each_failing_alloc(write_out_of_memory, &ports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_app_port),      fixture_test(test_ip),
		fixture_test(test_conflicts),     fixture_test(test_round_trip),
		fixture_test(test_refused),       fixture_test(test_limit),
		fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
