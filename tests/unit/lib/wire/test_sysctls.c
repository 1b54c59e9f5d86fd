/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/sysctls.h"

#include <errno.h>
#include <json-c/json_tokener.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_split(void **state)
{
	static const struct {
		const char *text, *path, *value;
	} cases[] = {
		{ "net.core.somaxconn=1024", "net/core/somaxconn", "1024" },
		{ "net/core/somaxconn=1024", "net/core/somaxconn", "1024" },
		{ "net.ipv4.conf.eth0/100.arp_filter=1", "net/ipv4/conf/eth0.100/arp_filter", "1" },
		{ "net/ipv4/conf/eth0.100/arp_filter=1", "net/ipv4/conf/eth0.100/arp_filter", "1" },
		{ "net.ipv4.tcp_rmem=4096\t87380 6291456", "net/ipv4/tcp_rmem",
		  "4096\t87380 6291456" },
		{ "kernel.core_pattern=|/bin/x=%p", "kernel/core_pattern", "|/bin/x=%p" },
		{ "single=0", "single", "0" },
	};
	static const char *const wrong[] = {
		"",       "=1",          "net.core",    "net.core=",   "net..core=1",
		".net=1", "net.=1",      "/net/core=1", "net/../x=1",  "../x=1",
		"..=1",   "./net=1",     "net.//.x=1",  "net/./x=1",   "net.core =1",
		"a b=1",  "net.c\xc3=1", "net.x=a\nb",  "net.x=\x7f",  "net.x=\xc3\xa4",
		"a/..=1", "net*=1",      "net.x\n=1",   "net.x=\x1bx",
	};
	char path[SYSCTL_NAME_MAX + 1];
	const char *value;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(sysctl_split(cases[i].text, path, &value), 0);
		assert_string_equal(path, cases[i].path);
		assert_string_equal(value, cases[i].value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (sysctl_split(wrong[i], path, &value) != -EINVAL)
			fail_msg("\"%s\" is taken", wrong[i]);
}

/* @name letters of a name, @value of a value. */
static void fill(char *text, size_t name, size_t value)
{
	memset(text, 'n', name);
	text[name] = '=';
	memset(text + name + 1, 'v', value);
	text[name + 1 + value] = '\0';
}

static void test_limits(void **state)
{
	(void)state;
	cleanup_strv struct strv list;
	char text[SYSCTL_TEXT_MAX + 2];
	struct err e = ERR_INIT;
	strv_init(&list, SYSCTLS_MAX);
	fill(text, SYSCTL_NAME_MAX, SYSCTL_VALUE_MAX);
	assert_int_equal(sysctls_add(&list, text, &e), 0);
	assert_string_equal(list.v[0], text);
	fill(text, SYSCTL_NAME_MAX + 1, 1);
	assert_int_equal(sysctls_add(&list, text, &e), -E2BIG);
	fill(text, 1, SYSCTL_VALUE_MAX + 1);
	assert_int_equal(sysctls_add(&list, text, &e), -E2BIG);
	assert_non_null(strstr(e.text, ": longer than 253 bytes of name or 1024 of value"));
	assert_int_equal(sysctls_add(&list, "net", &e), -EINVAL);
	assert_string_equal(e.text, "sysctl \"net\" is not NAME=VALUE, as sysctl(8) has it");
	while (list.n < SYSCTLS_MAX)
		assert_int_equal(sysctls_add(&list, "net.x=1", &e), 0);
	assert_int_equal(sysctls_add(&list, "net.x=1", &e), -E2BIG);
	assert_string_equal(e.text, "sysctls: at most 64: Argument list too long");
}

/* What of the host's kernel a pod without a VM can have for itself. */
static void test_shared(void **state)
{
	static const struct {
		const char *text, *error, *error_of_host_net;
	} cases[] = {
		{ "kernel.shmmax=1", "", "" },
		{ "kernel.shmall=1", "", "" },
		{ "kernel.shmmni=1", "", "" },
		{ "kernel.shm_rmid_forced=1", "", "" },
		{ "kernel.msgmax=1", "", "" },
		{ "kernel.msgmnb=1", "", "" },
		{ "kernel.msgmni=1", "", "" },
		{ "kernel/sem=1 2", "", "" },
		{ "fs.mqueue.msg_max=1", "", "" },
		{ "net.core.somaxconn=1", "", "\"net.core.somaxconn\" is of the network" },
		{ "net/ipv4/x=1", "", "\"net/ipv4/x\" is of the network, which is the host's" },
		{ "kernel.core_pattern=|/x", "\"kernel.core_pattern\" is of the whole host's",
		  "\"kernel.core_pattern\"" },
		{ "kernel.shmmax2=1", "\"kernel.shmmax2\" is", "\"kernel.shmmax2\" is" },
		{ "kernel.shmmax.x=1", "\"kernel.shmmax.x\" is", "\"kernel.shmmax.x\" is" },
		{ "kernel.hostname=x", "\"kernel.hostname\" is", "\"kernel.hostname\" is" },
		{ "vm.max_map_count=1", "\"vm.max_map_count\" is", "\"vm.max_map_count\" is" },
		{ "fs.file-max=1", "\"fs.file-max\" is", "\"fs.file-max\" is" },
		{ "fs.mqueue=1", "\"fs.mqueue\" is", "\"fs.mqueue\" is" },
		{ "net=1", "\"net\" is", "\"net\" is" },
		{ "network.x=1", "\"network.x\" is", "\"network.x\" is" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int host = 0; host < 2; host++) {
			cleanup_strv struct strv list;
			struct err e = ERR_INIT;
			const char *error = host ? cases[i].error_of_host_net : cases[i].error;
			strv_init(&list, SYSCTLS_MAX);
			assert_int_equal(sysctls_add(&list, "kernel.sem=1", &e), 0);
			assert_int_equal(sysctls_add(&list, cases[i].text, &e), 0);
			assert_int_equal(sysctls_check_shared(&list, host, &e),
					 *error ? -EOPNOTSUPP : 0);
			assert_non_null(strstr(e.text, error));
		}
}

static void test_round_trip(void **state)
{
	static const char *const given[] = { "net.core.somaxconn=1", "kernel/sem=1 2",
					     "net.core.somaxconn=2" };
	(void)state;
	cleanup_strv struct strv list, back;
	cleanup_json struct json_object *pod = json_object_new_object();
	struct err e = ERR_INIT;
	strv_init(&list, SYSCTLS_MAX);
	strv_init(&back, SYSCTLS_MAX);
	assert_int_equal(sysctls_write(&list, pod), 0);
	assert_string_equal(json_object_to_json_string_ext(pod, JSON_C_TO_STRING_PLAIN), "{}");
	assert_int_equal(sysctls_read(pod, &back, &e), 0);
	assert_int_equal(back.n, 0);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		assert_int_equal(sysctls_add(&list, given[i], &e), 0);
	assert_int_equal(sysctls_write(&list, pod), 0);
	assert_string_equal(json_object_to_json_string_ext(
				    pod, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
			    "{\"isolators\":[{\"name\":\"os/unix/sysctl\",\"value\":{"
			    "\"net.core.somaxconn\":\"2\",\"kernel/sem\":\"1 2\"}}]}");
	assert_int_equal(sysctls_read(pod, &back, &e), 0);
	assert_int_equal(back.n, 2);
	assert_string_equal(back.v[0], "net.core.somaxconn=2");
	assert_string_equal(back.v[1], "kernel/sem=1 2");
}

#define VALUE(value) "[{\"name\":\"os/unix/sysctl\",\"value\":" value "}]"

static void test_hostile(void **state)
{
	static const struct {
		const char *isolators, *error;
	} cases[] = {
		{ "1", "\"isolators\" of the pod is not a list" },
		{ "{}", "\"isolators\" of the pod is not a list" },
		{ "[1]", "isolator 0 of the pod has no name" },
		{ "[{}]", "isolator 0 of the pod has no name" },
		{ "[{\"name\":7}]", "isolator 0 of the pod has no name" },
		{ "[{\"name\":\"resource/memory\"}]",
		  "isolator \"resource/memory\" of a pod is not supported" },
		{ "[{\"name\":\"os/unix/sysctl\"}]", "is not an object of texts" },
		{ VALUE("[]"), "is not an object of texts" },
		{ VALUE("{\"net.x\":1}"), "sysctl \"net.x\": its value is not a text" },
		{ VALUE("{\"net.x\":null}"), "sysctl \"net.x\": its value is not a text" },
		{ VALUE("{\"net.x\":\"a\\u0000b\"}"), "sysctl \"net.x\": its value is not a text" },
		{ VALUE("{\"net.x=1\":\"2\"}"), "sysctl \"net.x=1\": too long, or no name" },
		{ VALUE("{\"\":\"2\"}"), "sysctl \"=2\" is not NAME=VALUE" },
		{ VALUE("{\"net/../../x\":\"2\"}"), "is not NAME=VALUE" },
		{ VALUE("{\"net.x\":\"a\\nb\"}"), "is not NAME=VALUE" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_strv struct strv list;
		cleanup_json struct json_object *pod = json_object_new_object();
		struct err e = ERR_INIT;
		strv_init(&list, SYSCTLS_MAX);
		json_object_object_add(pod, "isolators", json_tokener_parse(cases[i].isolators));
		assert_true(sysctls_read(pod, &list, &e) < 0);
		if (!strstr(e.text, cases[i].error))
			fail_msg("%s: %s", cases[i].isolators, e.text);
	}
}

/* An object of one more than there may be, and a name and value that are one byte too long. */
static void test_too_many(void **state)
{
	(void)state;
	for (int n = SYSCTLS_MAX; n <= SYSCTLS_MAX + 1; n++) {
		cleanup_strv struct strv list;
		cleanup_json struct json_object *pod = json_object_new_object();
		struct json_object *values = json_object_new_object();
		struct json_object *all = json_object_new_array();
		struct err e = ERR_INIT;
		strv_init(&list, SYSCTLS_MAX);
		for (int i = 0; i < n; i++) {
			char name[16];
			snprintf(name, sizeof(name), "net.x%d", i);
			json_object_object_add(values, name, json_object_new_string("1"));
		}
		json_append(all, json_make("name", json_object_new_string("os/unix/sysctl"),
					   "value", values, NULL));
		json_object_object_add(pod, "isolators", all);
		assert_int_equal(sysctls_read(pod, &list, &e), n > SYSCTLS_MAX ? -E2BIG : 0);
	}
	char name[SYSCTL_TEXT_MAX + 2], text[SYSCTL_TEXT_MAX + 128];
	fill(name, SYSCTL_TEXT_MAX, 0);
	name[SYSCTL_TEXT_MAX] = '\0';
	snprintf(text, sizeof(text), VALUE("{\"%s\":\"\"}"), name);
	cleanup_strv struct strv list;
	cleanup_json struct json_object *pod = json_object_new_object();
	struct err e = ERR_INIT;
	strv_init(&list, SYSCTLS_MAX);
	json_object_object_add(pod, "isolators", json_tokener_parse(text));
	assert_int_equal(sysctls_read(pod, &list, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too long, or no name"));
}

static int write_once(void *ctx)
{
	cleanup_json struct json_object *pod = json_object_new_object();
	cleanup_strv struct strv back;
	struct err e = ERR_INIT;
	strv_init(&back, SYSCTLS_MAX);
	int r = pod ? sysctls_write(ctx, pod) : -ENOMEM;
	return r < 0 ? r : sysctls_read(pod, &back, &e);
}

static void test_no_memory(void **state)
{
	(void)state;
	cleanup_strv struct strv list;
	struct err e = ERR_INIT;
	strv_init(&list, SYSCTLS_MAX);
	assert_int_equal(sysctls_add(&list, "net.x=1", &e), 0);
	for_each_failing_alloc(write_once, &list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),     cmocka_unit_test(test_limits),
		cmocka_unit_test(test_shared),    cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_hostile),   cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
