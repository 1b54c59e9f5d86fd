/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/doctor.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static int add_text(struct doctor *d, const char *text, struct err *e)
{
	return doctor_add_json(d, text, strlen(text), e);
}

static void test_format(void **state)
{
	(void)state;
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	assert_int_equal(doctor_add(&d, "data-directory", true, "ext4", "/var/lib/husk", NULL), 0);
	assert_int_equal(
		add_text(&d,
			 "{\"checks\":[{\"name\":\"kvm\",\"ok\":false,\"value\":\"paravirtual\","
			 "\"detail\":\"too slow\",\"remedy\":\"nothing: emulation is used\"},"
			 "{\"name\":\"qemu\",\"ok\":true,\"value\":\"7.2\"},"
			 "{\"name\":\"bare\",\"ok\":true}]}",
			 &e),
		0);
	buf_init(&out, 4096);
	assert_int_equal(doctor_format(&d, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), "ok    data-directory  ext4         /var/lib/husk\n"
					    "MISS  kvm             paravirtual  too slow\n"
					    "                      -> nothing: emulation is used\n"
					    "ok    qemu            7.2\n"
					    "ok    bare          \n");
}

static void test_bad_json(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "stage1's doctor printed no list of checks" },
		{ "{}", "stage1's doctor printed no list of checks" },
		{ "{\"checks\":{}}", "stage1's doctor printed no list of checks" },
		{ "{\"checks\":[]} x", "stage1's doctor printed no list of checks" },
		{ "{\"checks\":[1]}", "check 0 of stage1's doctor: No such file or directory" },
		{ "{\"checks\":[{\"name\":\"a\",\"ok\":true},{\"name\":\"b\",\"ok\":1}]}",
		  "check 1 of stage1's doctor: Bad message" },
		{ "{\"checks\":[{\"name\":\"a\",\"ok\":true,\"detail\":[]}]}",
		  "check 0 of stage1's doctor: Bad message" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
		struct err e = ERR_INIT;
		assert_true(add_text(&d, cases[i].text, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

static void test_limits(void **state)
{
	(void)state;
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	static char text[DOCTOR_INPUT_TEXT_MAX + 2], json[DOCTOR_INPUT_TEXT_MAX + 128];
	struct err e = ERR_INIT;
	memset(text, 'x', DOCTOR_INPUT_TEXT_MAX);
	snprintf(json, sizeof(json), "{\"checks\":[{\"name\":\"a\",\"ok\":true,\"value\":\"%s\"}]}",
		 text);
	assert_int_equal(add_text(&d, json, &e), 0);
	assert_int_equal(strlen(d.checks[0].value), DOCTOR_TEXT_MAX); /* cut */
	text[DOCTOR_INPUT_TEXT_MAX] = 'x';
	snprintf(json, sizeof(json), "{\"checks\":[{\"name\":\"a\",\"ok\":true,\"value\":\"%s\"}]}",
		 text);
	assert_int_equal(add_text(&d, json, &e), -EBADMSG);
	while (d.n < DOCTOR_CHECKS_MAX)
		assert_int_equal(doctor_add(&d, "n", true, text, "\x1b", NULL), 0);
	assert_int_equal(doctor_add(&d, "n", true, NULL, NULL, NULL), -E2BIG);
	assert_int_equal(strlen(d.checks[1].value), DOCTOR_TEXT_MAX);
	assert_string_equal(d.checks[1].detail, "?");
}

static void test_json(void **state)
{
	(void)state;
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	assert_int_equal(doctor_add(&d, "a", false, "v", NULL, "r"), 0);
	cleanup_json struct json_object *obj = doctor_json(&d, false);
	assert_string_equal(
		json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN),
		"{\"ok\":false,\"checks\":[{\"name\":\"a\",\"ok\":false,\"value\":\"v\","
		"\"remedy\":\"r\"}]}");
}

static int collect(void *ctx)
{
	(void)ctx;
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	int r = doctor_add(&d, "a", true, "b", "c", "d");
	if (r < 0)
		return r;
	cleanup_json struct json_object *obj = doctor_json(&d, true);
	return obj ? 0 : -ENOMEM;
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc(collect, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_format),         fixture_test(test_bad_json),
		fixture_test(test_limits),         fixture_test(test_json),
		fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
