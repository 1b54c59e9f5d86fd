/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/print.h"

#include <string.h>

#include "host/config/parse.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define HEAD(kind) "{\"rktVersion\":\"v1\",\"rktKind\":\"" kind "\","
#define TWO_HOSTS                                       \
	HEAD("auth")                                    \
	"\"domains\":[\"a\",\"b\"],\"type\":\"basic\"," \
	"\"credentials\":{\"user\":\"u\",\"password\":\"\\\"\\u001f\"}}"
#define TOKEN \
	HEAD("auth") "\"domains\":[\"c\"],\"type\":\"oauth\",\"credentials\":{\"token\":\"t\"}}"
#define DOCKER                                                    \
	HEAD("dockerAuth")                                        \
	"\"registries\":[\"a\"],\"credentials\":{\"user\":\"u\"," \
	"\"password\":\"p\"}}"

static int print(const struct config *c, bool pretty, char **ret)
{
	cleanup_buf struct buf out;
	buf_init(&out, CONFIG_OUTPUT_MAX);
	int r = config_print(c, pretty, &out);
	if (r == 0)
		*ret = buf_take_string(&out);
	return r == 0 && !*ret ? -ENOMEM : r;
}

static void add(struct config *c, const char *text, unsigned part)
{
	assert_int_equal(config_parse(text, strlen(text), part, c, NULL), 0);
}

static void test_nothing(void **state)
{
	(void)state;
	struct config c;
	cleanup_free char *text = NULL;
	config_init(&c);
	assert_int_equal(print(&c, false, &text), 0);
	assert_string_equal(
		text, "{\"stage0\":[" HEAD("paths") "\"data\":\"\",\"stage1-images\":\"\"}," HEAD(
			      "stage1") "\"name\":\"\",\"version\":\"\",\"location\":\"\"}]}\n");
}

static void test_all(void **state)
{
	static const char paths[] =
		HEAD("paths") "\"data\":\"/d\",\"stage1-images\":\"/i\",\"cni-plugins\":[\"/p\"]}";
	static const char images[] = HEAD("images") "\"compression\":\"lz4\",\"maxBytes\":\"1Gi\"}";
	static const char stage1[] = HEAD(
		"stage1") "\"name\":\"n\",\"version\":\"1\",\"location\":"
			  "\"https://h/x\",\"options\":{\"scratch-size\":\"8Gi\"},\"annotations\":"
			  "[\"cpus\",\"memory\"],\"container-roots\":\"live\"}";
	(void)state;
	CLEANUP(config_deinit) struct config c;
	cleanup_free char *text = NULL;
	config_init(&c);
	add(&c, TWO_HOSTS, CONFIG_AUTH);
	add(&c, DOCKER, CONFIG_AUTH);
	add(&c, TOKEN, CONFIG_AUTH);
	add(&c, paths, CONFIG_PATHS);
	add(&c, stage1, CONFIG_STAGE1);
	add(&c, images, CONFIG_IMAGES);
	assert_int_equal(print(&c, false, &text), 0);
	/* One entry per host; kinds in a fixed order. */
	static const char *const parts[] = {
		"{\"stage0\":[" HEAD("auth") "\"domains\":[\"a\"],\"type\":\"basic\",",
		"\"credentials\":{\"user\":\"u\",\"password\":\"\\\"\\u001f\"}},",
		HEAD("auth") "\"domains\":[\"b\"],\"type\":\"basic\",",
		"\"credentials\":{\"user\":\"u\",\"password\":\"\\\"\\u001f\"}},",
		TOKEN,
		"," DOCKER ",",
		paths,
		",",
		stage1,
		",",
		images,
		"]}\n",
	};
	const char *at = text;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strncmp(at, parts[i], strlen(parts[i])) != 0)
			fail_msg("got \"%s\", want \"%s\"", at, parts[i]);
		at += strlen(parts[i]);
	}
	assert_string_equal(at, "");
}

static void test_pretty(void **state)
{
	(void)state;
	struct config c;
	cleanup_free char *text = NULL;
	config_init(&c);
	assert_int_equal(print(&c, true, &text), 0);
	assert_string_equal(text, "{\n  \"stage0\":[\n    {\n      \"rktVersion\":\"v1\",\n"
				  "      \"rktKind\":\"paths\",\n      \"data\":\"\",\n"
				  "      \"stage1-images\":\"\"\n    },\n    {\n"
				  "      \"rktVersion\":\"v1\",\n      \"rktKind\":\"stage1\",\n"
				  "      \"name\":\"\",\n      \"version\":\"\",\n"
				  "      \"location\":\"\"\n    }\n  ]\n}\n");
}

static int print_it(void *ctx)
{
	cleanup_free char *text = NULL;
	return print(ctx, true, &text);
}

static void test_short_memory(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	add(&c, TWO_HOSTS, CONFIG_AUTH);
	add(&c, DOCKER, CONFIG_AUTH);
	for_each_failing_alloc_lenient(print_it, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_nothing),
		fixture_test(test_all),
		fixture_test(test_pretty),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
