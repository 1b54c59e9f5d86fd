/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/config.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static int add(struct auths *list, const char *host, const char *token)
{
	CLEANUP(auth_deinit)
	struct auth a = { .host = strdup(host), .type = AUTH_OAUTH, .token = strdup(token) };
	return a.host && a.token ? auths_add(list, &a) : -ENOMEM;
}

static void test_merge(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	CLEANUP(config_deinit) struct config layer;
	config_init(&c);
	config_init(&layer);
	c.data = strdup("/old");
	c.stage1_images = strdup("/images");
	assert_int_equal(strv_add(&c.cni_plugins, "/a"), 0);
	assert_int_equal(strv_add(&layer.cni_plugins, "/b"), 0);
	assert_int_equal(strv_add(&layer.cni_plugins, "/c"), 0);
	c.stage1_name = strdup("name");
	c.stage1_version = strdup("1");
	assert_int_equal(add(&c.auth, "a", "1"), 0);
	assert_int_equal(add(&c.auth, "b", "2"), 0);
	layer.data = strdup("/new");
	layer.stage1_location = strdup("/location");
	c.images_compression = strdup("lz4");
	c.images_max_bytes = strdup("1G");
	assert_int_equal(strv_add(&c.stage1_options, "a=1"), 0);
	assert_int_equal(strv_add(&layer.stage1_options, "a=2"), 0);
	assert_int_equal(strv_add(&c.stage1_annotations, "memory"), 0);
	assert_int_equal(strv_add(&layer.stage1_annotations, CONFIG_NONE), 0);
	c.stage1_roots = strdup("live");
	layer.stage1_roots = strdup("packed");
	layer.images_compression = strdup("zstd");
	assert_int_equal(add(&layer.auth, "c", "3"), 0);
	assert_int_equal(add(&layer.auth, "a", "4"), 0);
	assert_int_equal(config_merge(&c, &layer), 0);
	assert_string_equal(c.data, "/new");
	assert_string_equal(c.stage1_images, "/images");
	assert_int_equal(c.cni_plugins.n, 2);
	assert_string_equal(c.cni_plugins.v[0], "/b");
	assert_string_equal(c.stage1_name, "name");
	assert_string_equal(c.stage1_location, "/location");
	assert_string_equal(c.images_compression, "zstd");
	assert_string_equal(c.images_max_bytes, "1G");
	assert_int_equal(c.stage1_options.n, 2);
	assert_string_equal(c.stage1_options.v[1], "a=2"); /* the last one counts */
	assert_int_equal(c.stage1_annotations.n, 1);
	assert_string_equal(c.stage1_annotations.v[0], CONFIG_NONE);
	assert_string_equal(c.stage1_roots, "packed");
	assert_int_equal(c.auth.n, 3);
	assert_string_equal(c.auth.v[0].token, "4");
	assert_string_equal(c.auth.v[1].token, "2");
	assert_string_equal(c.auth.v[2].token, "3");
}

static void test_drop(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	c.data = strdup("/data");
	c.stage1_location = strdup("/location");
	c.parts = CONFIG_PATHS | CONFIG_STAGE1;
	assert_int_equal(add(&c.auth, "a", "1"), 0);
	config_drop(&c, CONFIG_PATHS | CONFIG_AUTH);
	assert_null(c.data);
	assert_int_equal(c.auth.n, 0);
	assert_int_equal(c.parts, CONFIG_STAGE1);
	assert_string_equal(c.stage1_location, "/location");
}

static int add_and_merge(void *ctx)
{
	(void)ctx;
	CLEANUP(config_deinit) struct config c;
	CLEANUP(config_deinit) struct config layer;
	config_init(&c);
	config_init(&layer);
	int r = add(&c.auth, "a", "1");
	if (r == 0)
		r = add(&layer.auth, "a", "2");
	if (r == 0)
		r = add(&layer.auth, "b", "3");
	return r == 0 ? config_merge(&c, &layer) : r;
}

static void test_short_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(add_and_merge, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_merge),
		fixture_test(test_drop),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
