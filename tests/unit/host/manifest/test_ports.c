/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static void describe(const struct pod_port *p, char *out, size_t size)
{
	snprintf(out, size, "%s %s %u<-%s:%u", p->name, port_protocol_name(p->protocol), p->port,
		 p->host_ip, p->host_port);
}

static void test_forms(void **state)
{
	static const struct {
		bool direct;
		const char *text, *want;
	} cases[] = {
		{ false, "http:80", "http tcp 0<-:80" },
		{ false, "http:127.0.0.1:80", "http tcp 0<-127.0.0.1:80" },
		{ false, "http:[::1]:80", "http tcp 0<-::1:80" },
		{ false, "http:2001:db8:0::1:80", "http tcp 0<-2001:db8::1:80" },
		{ false, "80:8080", "80 tcp 0<-:8080" },
		{ false, "80/tcp:8080", "80-tcp tcp 80<-:8080" },
		{ false, "53/udp:10.0.0.1:53", "53-udp udp 53<-10.0.0.1:53" },
		{ false, "1/sctp:[::]:65535", "1-sctp sctp 1<-:::65535" },
		{ true, "80/tcp:8080", "80-tcp tcp 80<-:8080" },
		{ true, "80/tcp:[::1]:8080", "80-tcp tcp 80<-::1:8080" },
		{ true, "http:tcp:8080:0.0.0.0:80", "http tcp 8080<-0.0.0.0:80" },
		{ true, "http:udp:8080:[::1]:80", "http udp 8080<-::1:80" },
		{ true, "http:udp:8080:::1:80", "http udp 8080<-::1:80" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 };
		struct err e = ERR_INIT;
		char got[128];
		int r = cases[i].direct ? ports_add_direct(&p, cases[i].text, &e)
					: ports_add(&p, cases[i].text, &e);
		if (r < 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		describe(&p.v[0], got, sizeof(got));
		assert_string_equal(got, cases[i].want);
	}
}

static void test_refused_forms(void **state)
{
	static const char *const both[] = {
		"",
		"http",
		":80",
		"http:",
		"http:0",
		"http:65536",
		"http:x:80",
		"http::80",
		"http:[::1:80",
		"http:[]:80",
		"http:[:80",
		"-x:80",
		"80/icmp:80",
		"80/tcp/udp:80",
		"0/tcp:80",
		"http:80/tcp",
		"Http:80",
		"80/tcp:1.2.3:80",
		"80/tcp:[1.2.3.4:80",
		"80/tcp:[::1%lo]:80",
	};
	static const char *const direct[] = {
		"http:80",
		"http:tcp:80:80",
		"http:tcp:0:0.0.0.0:80",
		"http:icmp:1:0.0.0.0:1",
		"80/tcp:tcp:1:0.0.0.0:1",
	};
	CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 };
	char text[256];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(both) + ARRAY_SIZE(direct); i++) {
		bool is_both = i < ARRAY_SIZE(both);
		const char *port = is_both ? both[i] : direct[i - ARRAY_SIZE(both)];
		struct err e = ERR_INIT;
		if (is_both) {
			assert_int_equal(ports_add(&p, port, &e), -EINVAL);
			snprintf(text, sizeof(text),
				 "--port: \"%s\" is not of the form NAME:[HOSTIP:]HOSTPORT or "
				 "PORT/PROTOCOL:[HOSTIP:]HOSTPORT",
				 port);
			assert_string_equal(e.text, text);
		}
		assert_int_equal(ports_add_direct(&p, port, &e), -EINVAL);
		snprintf(text, sizeof(text),
			 "--port: \"%s\" is not of the form PORT/PROTOCOL:[HOSTIP:]HOSTPORT or "
			 "NAME:PROTOCOL:PORT:HOSTIP:HOSTPORT",
			 port);
		assert_string_equal(e.text, text);
	}
	memset(text, '1', sizeof(text) - 1); /* longer than any */
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(ports_add(&p, text, NULL), -EINVAL);
	assert_int_equal(ports_add_direct(&p, text, NULL), -EINVAL);
	assert_int_equal(p.n, 0);
}

static void test_limit(void **state)
{
	CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 };
	struct err e = ERR_INIT;
	(void)state;
	for (size_t i = 0; i < POD_PORTS_MAX; i++) {
		char text[32];
		snprintf(text, sizeof(text), "80/tcp:%zu", i + 1);
		assert_int_equal(ports_add(&p, text, &e), 0);
	}
	assert_int_equal(ports_add(&p, "80/tcp:1000", &e), -E2BIG);
	assert_string_equal(e.text, "--port: at most 256: Argument list too long");
}

static void add_app(struct pod_manifest *m, const char *name, const char *port_name,
		    enum port_protocol protocol, uint16_t number)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct pod_port port = { .protocol = protocol, .port = number, .count = 3 };
	pod_app_init(&app);
	str_copy(app.name, sizeof(app.name), name);
	str_copy(port.name, sizeof(port.name), port_name);
	assert_int_equal(pod_ports_add(&app.ports, &port), 0);
	assert_int_equal(pod_manifest_add(m, &app), 0);
}

static void test_resolve(void **state)
{
	static const struct {
		const char *one, *two, *want, *error;
	} cases[] = {
		{ "http:80", "53/udp:[::1]:80", "http tcp 8080<-:80", "" },
		{ "dns:53", NULL, "dns udp 5353<-:53", "" },
		{ "nope:80", NULL, NULL,
		  "port name \"nope\" could not be found in any apps (give PORT/PROTOCOL:HOSTPORT)" },
		{ "twice:80", NULL, NULL,
		  "port name \"twice\" defined multiple apps (give PORT/PROTOCOL:HOSTPORT)" },
		{ "http:80", "1/tcp:10.0.0.1:80", NULL,
		  "port tcp-10.0.0.1:80 already mapped to pod port 8080" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_ports_deinit) struct pod_ports p = { 0 };
		CLEANUP(pod_manifest_deinit) struct pod_manifest m;
		struct err e = ERR_INIT;
		char got[128];
		pod_manifest_init(&m);
		add_app(&m, "a", "http", PORT_TCP, 8080);
		add_app(&m, "b", "dns", PORT_UDP, 5353);
		add_app(&m, "c", "twice", PORT_UDP, 1);
		add_app(&m, "d", "twice", PORT_UDP, 1);
		assert_int_equal(ports_add(&p, cases[i].one, &e), 0);
		if (cases[i].two)
			assert_int_equal(ports_add(&p, cases[i].two, &e), 0);
		int r = ports_resolve(&p, &m, &e);
		assert_string_equal(e.text, cases[i].error);
		assert_int_equal(r < 0, *cases[i].error != '\0');
		if (r < 0)
			continue;
		describe(&m.ports.v[0], got, sizeof(got));
		assert_string_equal(got, cases[i].want);
		assert_int_equal(m.ports.v[0].count, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_forms),
		fixture_test(test_refused_forms),
		fixture_test(test_limit),
		fixture_test(test_resolve),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
