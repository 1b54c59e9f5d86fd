/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/appc_app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define APP(members) "{\"app\":{" members "}}"

static int apply(const char *manifest, struct pod_app *app, struct err *e)
{
	return wishes_apply(manifest, strlen(manifest), app, e);
}

static void test_image_alone(void **state)
{
	(void)state;
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct err e = ERR_INIT;
	pod_app_init(&app);
	assert_int_equal(
		apply(APP("\"ports\":[{\"name\":\"http\",\"protocol\":\"tcp\",\"port\":80,"
			  "\"count\":0,\"socketActivated\":false}],"
			  "\"eventHandlers\":[{\"name\":\"post-stop\",\"exec\":[\"/after\",\"x\"]},"
			  "{\"name\":\"pre-start\",\"exec\":[\"/before\"]}],"
			  "\"supplementaryGIDs\":[400,500],\"isolators\":["
			  "{\"name\":\"os/linux/capabilities-remove-set\",\"value\":{\"set\":"
			  "[\"CAP_MKNOD\"]}},"
			  "{\"name\":\"os/linux/no-new-privileges\",\"value\":true},"
			  "{\"name\":\"resource/memory\",\"value\":{\"limit\":\"32Mi\"}}]"),
		      &app, &e),
		0);
	assert_int_equal(app.groups.n, 2);
	assert_string_equal(app.groups.v[1], "500");
	assert_int_equal(app.isolators.memory, 32 << 20);
	assert_true(app.isolators.no_new_privs);
	assert_string_equal(app.pre_start.v[0], "/before");
	assert_int_equal(app.ports.n, 1);
	assert_int_equal(app.ports.v[0].port, 80);
	assert_int_equal(app.ports.v[0].count, 1);
	assert_string_equal(app.post_stop.v[1], "x");
	assert_string_equal(app.isolators.caps.v[0], "CAP_MKNOD");
}

static void test_command_line_wins(void **state)
{
	(void)state;
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct err e = ERR_INIT;
	pod_app_init(&app);
	assert_int_equal(strv_add(&app.groups, "7"), 0);
	assert_int_equal(isolators_set(&app.isolators, ISOLATOR_CAPS_RETAIN, "kill", NULL), 0);
	assert_int_equal(
		apply(APP("\"supplementaryGIDs\":[400],\"isolators\":["
			  "{\"name\":\"os/linux/capabilities-remove-set\",\"value\":{\"set\":"
			  "[\"CAP_MKNOD\"]}}]"),
		      &app, &e),
		0);
	assert_int_equal(app.groups.n, 1);
	assert_string_equal(app.groups.v[0], "7");
	assert_int_equal(app.isolators.given, 1U << ISOLATOR_CAPS_RETAIN);
	assert_string_equal(app.isolators.caps.v[0], "CAP_KILL");
}

static void test_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = { "{}", APP(""), APP("\"eventHandlers\":[]"),
					     APP("\"isolators\":[],\"ports\":[]") };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		struct err e = ERR_INIT;
		pod_app_init(&app);
		assert_int_equal(apply(texts[i], &app, &e), 0);
		assert_int_equal(app.isolators.given, 0);
		assert_int_equal(app.groups.n, 0);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ APP("\"isolators\":[{\"name\":\"resource/block-iops\",\"value\":{}}]"),
		  "isolator \"resource/block-iops\" is not supported in this version" },
		{ APP("\"isolators\":[{\"name\":\"os/linux/capabilities-retain-set\","
		      "\"value\":{\"set\":[\"CAP_FLY\"]}}]"),
		  "there is no capability \"CAP_FLY\"" },
		{ APP("\"supplementaryGIDs\":[4294967295]"),
		  "\"supplementaryGIDs\" member 0 is not a number of a group" },
		{ APP("\"eventHandlers\":[{\"name\":\"post-start\",\"exec\":[\"x\"]}]"),
		  "event handler \"post-start\" is not supported (pre-start and post-stop are)" },
		{ APP("\"ports\":[{\"name\":\"a\",\"protocol\":\"x\"}]"),
		  "\"ports\" member 0: \"protocol\" is not tcp, udp or sctp" },
		{ APP("\"isolators\":[{\"name\":\"husk/seccomp-profile\",\"value\":{}}]"),
		  "isolator \"husk/seccomp-profile\" is not an image's to ask for" },
		{ APP("\"isolators\":[{\"name\":\"husk/masked-paths\",\"value\":{\"set\":[]}},"
		      "{\"name\":\"husk/read-only-paths\",\"value\":{\"set\":[]}}]"),
		  "isolator \"husk/masked-paths\" is not an image's to ask for" },
		{ "{", "its manifest is not JSON" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		struct err e = ERR_INIT;
		pod_app_init(&app);
		assert_true(apply(cases[i].text, &app, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

static int apply_once(void *ctx)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	(void)ctx;
	pod_app_init(&app);
	return apply(APP("\"supplementaryGIDs\":[400],\"isolators\":[{\"name\":"
			 "\"husk/pids-limit\",\"value\":5}]"),
		     &app, NULL);
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(apply_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_image_alone),    fixture_test(test_command_line_wins),
		fixture_test(test_nothing),        fixture_test(test_refused),
		fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
