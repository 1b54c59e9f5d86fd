/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_image.h"

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
		const char *name, *identifier, *version;
		bool whole;
	} cases[] = {
		{ "", "", "", true },
		{ "debian", "debian", "", true },
		{ "coreos.com/etcd:v3.1", "coreos.com/etcd", "v3.1", true },
		{ "docker.io/library/debian:12", "docker.io/library/debian", "12", true },
		{ "localhost:5000/x", "localhost-5000/x", "", false },
		{ "localhost:5000/x:y", "localhost-5000/x", "y", false },
		{ "a/b@sha256:00", "a/b", "", false },
		{ "a/b:c@sha256:00", "a/b", "c", false },
		{ "shorthash--0", "shorthash--0", "", true },
		{ "Short--hash:0", "short-hash", "0", false },
		{ "/dir/Img", "dir/img", "", false },
		{ "a_b:1", "a_b", "1", true },
		{ "x:", "x", "", false },
		{ ":v", "", "v", false },
		{ "--", "", "", false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pod_image_name parts;
		pod_image_split(cases[i].name, &parts);
		assert_string_equal(parts.identifier, cases[i].identifier);
		assert_string_equal(parts.version, cases[i].version);
		assert_int_equal(parts.whole, cases[i].whole);
	}
}

/* At the maximum all of it fits. */
static void test_split_longest(void **state)
{
	struct pod_image_name parts;
	char name[POD_IMAGE_NAME_MAX + 1];
	(void)state;
	memset(name, 'n', POD_IMAGE_NAME_MAX);
	name[POD_IMAGE_NAME_MAX] = '\0';
	pod_image_split(name, &parts);
	assert_string_equal(parts.identifier, name);
	assert_true(parts.whole);
	name[1] = ':';
	pod_image_split(name, &parts);
	assert_string_equal(parts.version, name + 2);
	assert_true(parts.whole);
}

/* A member as appc tools write and read it. */
static void test_format(void **state)
{
	(void)state;
	cleanup_json struct json_object *image = pod_image_format("sha512-ab", "example.com/a:1.0");
	assert_string_equal(
		json_object_to_json_string_ext(image, JSON_C_TO_STRING_PLAIN |
							      JSON_C_TO_STRING_NOSLASHESCAPE),
		"{\"id\":\"sha512-ab\",\"name\":\"example.com/a\",\"labels\":[{\"name\":\"version\",\"value\":"
		"\"1.0\"},{\"name\":\"os\",\"value\":\"linux\"},{\"name\":\"arch\",\"value\":\"" POD_HOST_ARCH
		"\"}]}");
	char id[POD_IMAGE_ID_MAX + 1], name[POD_IMAGE_NAME_MAX + 1];
	assert_int_equal(pod_image_read(image, id, name, NULL), 0);
	assert_string_equal(id, "sha512-ab");
	assert_string_equal(name, "example.com/a:1.0");
	cleanup_json struct json_object *bare = pod_image_format("sha512-ab", "--");
	assert_string_equal(json_object_to_json_string_ext(bare, JSON_C_TO_STRING_PLAIN),
			    "{\"id\":\"sha512-ab\"}");
}

static int read_text(const char *text, char name[POD_IMAGE_NAME_MAX + 1], struct err *e)
{
	char id[POD_IMAGE_ID_MAX + 1];
	cleanup_json struct json_object *image = json_tokener_parse(text);
	return pod_image_read(image, id, name, e);
}

/* Manifests of before have the version in the name, or no name. */
static void test_read_old(void **state)
{
	char name[POD_IMAGE_NAME_MAX + 1];
	(void)state;
	assert_int_equal(read_text("{\"id\":\"sha256-00\",\"name\":\"debian:12\"}", name, NULL), 0);
	assert_string_equal(name, "debian:12");
	assert_int_equal(
		read_text(
			"{\"id\":\"sha256-00\",\"labels\":[{\"name\":\"version\",\"value\":\"1\"}]}",
			name, NULL),
		0);
	assert_string_equal(name, "");
}

static void test_read_refuses(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "{}", "\"id\" is missing" },
		{ "{\"id\":1}", "\"id\" is missing" },
		{ "{\"id\":\"x\",\"name\":1}", "\"name\" is not a string" },
		{ "{\"id\":\"x\",\"labels\":1}",
		  "\"labels\" of the image is not a list of at most 64" },
		{ "{\"id\":\"x\",\"labels\":[1]}", "\"labels\" of the image" },
		{ "{\"id\":\"x\",\"labels\":[{\"name\":\"version\"}]}", "\"labels\" of the image" },
	};
	char name[POD_IMAGE_NAME_MAX + 1];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(read_text(cases[i].text, name, &e), -EBADMSG);
		assert_non_null(strstr(e.text, cases[i].words));
	}
}

/* Name and version, at the limit and one byte beyond. */
static void test_read_limit(void **state)
{
	(void)state;
	for (int beyond = 0; beyond < 2; beyond++) {
		char text[1024], name[POD_IMAGE_NAME_MAX + 1];
		char version[POD_IMAGE_NAME_MAX + 1] = "";
		struct err e = ERR_INIT;
		memset(version, 'v', (size_t)(POD_IMAGE_NAME_MAX - 2 + beyond));
		snprintf(
			text, sizeof(text),
			"{\"id\":\"x\",\"name\":\"n\",\"labels\":[{\"name\":\"version\",\"value\":\"%s\"}]}",
			version);
		assert_int_equal(read_text(text, name, &e), beyond ? -EBADMSG : 0);
		if (beyond)
			assert_non_null(strstr(
				e.text, "name and version of the image are longer than 255"));
		else
			assert_int_equal(strlen(name), POD_IMAGE_NAME_MAX);
	}
}

static int format_once(void *ctx)
{
	(void)ctx;
	struct json_object *image = pod_image_format("sha512-ab", "example.com/a:1.0");
	json_object_put(image);
	return image ? 0 : -ENOMEM;
}

static void test_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(format_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_split),        fixture_test(test_split_longest),
		fixture_test(test_format),       fixture_test(test_read_old),
		fixture_test(test_read_refuses), fixture_test(test_read_limit),
		fixture_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
