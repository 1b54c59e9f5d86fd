/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_tags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_add(void **state)
{
	(void)state;
	CLEANUP(pod_tags_deinit) struct pod_tags t;
	struct err e = ERR_INIT;
	char name[POD_TAG_NAME_MAX + 3];
	static char value[POD_TAG_VALUE_MAX + 4];
	pod_tags_init(&t);
	assert_int_equal(pod_tags_add(&t.labels, "a=", &e), 0);
	assert_int_equal(pod_tags_add(&t.labels, "a.b/c=x=y", &e), 0);
	assert_int_equal(pod_tags_add(&t.labels, "a=again", &e), -EEXIST);
	assert_string_equal(e.text, "\"a\" is there twice");
	assert_int_equal(pod_tags_add(&t.annotations, "a=", &e), 0); /* the other list */
	assert_int_equal(pod_tags_add(&t.labels, "none", &e), -EINVAL);
	assert_int_equal(pod_tags_add(&t.labels, "=none", &e), -EINVAL);
	assert_int_equal(pod_tags_add(&t.labels, "a\xff=", &e), -EINVAL);
	memset(name, 'n', sizeof(name));
	strcpy(name + POD_TAG_NAME_MAX, "=");
	assert_int_equal(pod_tags_add(&t.labels, name, &e), 0);
	strcpy(name + POD_TAG_NAME_MAX, "n=");
	assert_int_equal(pod_tags_add(&t.labels, name, &e), -EINVAL);
	memset(value, 'v', sizeof(value) - 1);
	memcpy(value, "k=", 2);
	value[POD_TAG_VALUE_MAX + 2] = '\0';
	assert_int_equal(pod_tags_add(&t.labels, value, &e), 0);
	value[1] = 'k';
	value[2] = '=';
	value[POD_TAG_VALUE_MAX + 2] = 'v';
	value[POD_TAG_VALUE_MAX + 3] = '\0';
	assert_int_equal(pod_tags_add(&t.labels, value, &e), 0);
	memcpy(value, "l=v", 3);
	assert_int_equal(pod_tags_add(&t.labels, value, &e), -EINVAL);
	for (int i = 0; t.annotations.n < POD_TAGS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d=", i);
		assert_int_equal(pod_tags_add(&t.annotations, name, &e), 0);
	}
	assert_int_equal(pod_tags_add(&t.annotations, "one=more", &e), -E2BIG);
	pod_tags_deinit(NULL);
}

static void test_round_trip(void **state)
{
	(void)state;
	CLEANUP(pod_tags_deinit) struct pod_tags t, back, copy;
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_json struct json_object *empty = json_object_new_object();
	struct err e = ERR_INIT;
	pod_tags_init(&t);
	pod_tags_init(&back);
	pod_tags_init(&copy);
	assert_int_equal(pod_tags_write(&t, empty), 0);
	assert_int_equal(json_object_object_length(empty), 0);
	assert_int_equal(pod_tags_add(&t.annotations, "a=1=2", &e), 0);
	assert_int_equal(pod_tags_add(&t.labels, "b=", &e), 0);
	assert_int_equal(pod_tags_write(&t, obj), 0);
	assert_int_equal(pod_tags_read(obj, &back, &e), 0);
	assert_int_equal(pod_tags_copy(&copy, &back), 0);
	assert_int_equal(copy.annotations.n, 1);
	assert_string_equal(copy.annotations.v[0], "a=1=2");
	assert_int_equal(copy.labels.n, 1);
	assert_string_equal(copy.labels.v[0], "b=");
}

static void test_read_refuses(void **state)
{
	(void)state;
	static const char *const samples[] = {
		"{\"userLabels\":[]}",
		"{\"userLabels\":{\"a\":1}}",
		"{\"userAnnotations\":{\"a=b\":\"c\"}}",
		"{\"userAnnotations\":{\"\":\"c\"}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		CLEANUP(pod_tags_deinit) struct pod_tags t;
		cleanup_json struct json_object *obj = NULL;
		struct err e = ERR_INIT;
		pod_tags_init(&t);
		assert_int_equal(json_parse(samples[i], strlen(samples[i]), &obj), 0);
		assert_int_equal(pod_tags_read(obj, &t, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "\"user"));
	}
}

static int write_some(void *ctx)
{
	const struct pod_tags *t = ctx;
	cleanup_json struct json_object *obj = json_object_new_object();
	return obj ? pod_tags_write(t, obj) : -ENOMEM;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	CLEANUP(pod_tags_deinit) struct pod_tags t;
	struct err e = ERR_INIT;
	pod_tags_init(&t);
	assert_int_equal(pod_tags_add(&t.annotations, "a=1", &e), 0);
	assert_int_equal(pod_tags_add(&t.labels, "b=2", &e), 0);
	for_each_failing_alloc(write_some, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add),
		fixture_test(test_round_trip),
		fixture_test(test_read_refuses),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
