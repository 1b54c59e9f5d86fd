/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/parse.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define FILE_OF(kind, more) "{\"rktVersion\":\"v1\",\"rktKind\":\"" kind "\"" more "}"
#define BASIC               ",\"credentials\":{\"user\":\"u\",\"password\":\"p\"}"
#define AUTH(more)          FILE_OF("auth", more)
#define BASIC_AUTH(domains) AUTH(",\"type\":\"basic\",\"domains\":" domains BASIC)
#define DOCKER(more)        FILE_OF("dockerAuth", more)
#define PATHS(more)         FILE_OF("paths", more)
#define STAGE1(more)        FILE_OF("stage1", more)
#define IMAGES(more)        FILE_OF("images", more)

static int parse(const char *text, unsigned part, struct config *c, struct err *e)
{
	return config_parse(text, strlen(text), part, c, e);
}

static void test_auth(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	assert_int_equal(parse(BASIC_AUTH("[\"a\",\"b:443\"]"), CONFIG_AUTH, &c, NULL), 0);
	assert_int_equal(
		parse(AUTH(",\"type\":\"oauth\",\"domains\":[\"c\"],\"credentials\":{\"token\":"
			   "\"t\"}"),
		      CONFIG_AUTH, &c, NULL),
		0);
	assert_int_equal(parse(AUTH(",\"type\":\"aws\",\"domains\":[\"d\"],\"credentials\":{"
				    "\"accessKeyID\":\"k\",\"secretAccessKey\":\"s\"}"),
			       CONFIG_AUTH, &c, NULL),
			 0);
	assert_int_equal(parse(AUTH(",\"type\":\"aws\",\"domains\":[\"e\"],\"credentials\":{"
				    "\"accessKeyID\":\"k\",\"secretAccessKey\":\"s\",\"awsRegion\":"
				    "\"r\"}"),
			       CONFIG_AUTH, &c, NULL),
			 0);
	assert_int_equal(c.auth.n, 5);
	const struct auth *a = auths_find(&c.auth, "b:443");
	assert_int_equal(a->type, AUTH_BASIC);
	assert_string_equal(a->user, "u");
	assert_string_equal(a->password, "p");
	assert_null(a->token);
	a = auths_find(&c.auth, "c");
	assert_int_equal(a->type, AUTH_OAUTH);
	assert_string_equal(a->token, "t");
	a = auths_find(&c.auth, "d");
	assert_int_equal(a->type, AUTH_AWS);
	assert_string_equal(a->access_key_id, "k");
	assert_string_equal(a->secret_access_key, "s");
	assert_null(a->aws_region);
	assert_string_equal(auths_find(&c.auth, "e")->aws_region, "r");
}

static void test_docker_auth(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	/* The same host as in "auth" is another matter. */
	assert_int_equal(parse(BASIC_AUTH("[\"a\"]"), CONFIG_AUTH, &c, NULL), 0);
	assert_int_equal(parse(DOCKER(",\"registries\":[\"a\"]" BASIC), CONFIG_AUTH, &c, NULL), 0);
	assert_int_equal(c.docker_auth.n, 1);
	assert_string_equal(c.docker_auth.v[0].user, "u");
	assert_string_equal(c.docker_auth.v[0].password, "p");
}

static void test_paths_and_stage1(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	assert_int_equal(parse(PATHS(""), CONFIG_PATHS, &c, NULL), 0);
	assert_int_equal(
		parse(PATHS(",\"data\":\"\",\"stage1-images\":null"), CONFIG_PATHS, &c, NULL), 0);
	assert_null(c.data);
	assert_int_equal(parse(PATHS(",\"data\":\"/d\",\"more\":[1]"), CONFIG_PATHS, &c, NULL), 0);
	assert_int_equal(parse(PATHS(",\"stage1-images\":\"/i\""), CONFIG_PATHS, &c, NULL), 0);
	assert_string_equal(c.data, "/d");
	assert_string_equal(c.stage1_images, "/i");
	assert_int_equal(parse(PATHS(",\"cni-plugins\":[]"), CONFIG_PATHS, &c, NULL), 0);
	assert_int_equal(c.cni_plugins.n, 1);
	assert_string_equal(c.cni_plugins.v[0], CONFIG_NONE);
	config_deinit(&c);
	config_init(&c);
	assert_int_equal(parse(PATHS(",\"cni-plugins\":[\"/a\",\"/b\"]"), CONFIG_PATHS, &c, NULL),
			 0);
	assert_int_equal(c.cni_plugins.n, 2);
	assert_string_equal(c.cni_plugins.v[1], "/b");
	assert_int_equal(parse(STAGE1(""), CONFIG_STAGE1, &c, NULL), 0);
	assert_int_equal(
		parse(STAGE1(",\"name\":\"n\",\"version\":\"1\""), CONFIG_STAGE1, &c, NULL), 0);
	assert_int_equal(
		parse(STAGE1(",\"location\":\"https://h/x.aci\""), CONFIG_STAGE1, &c, NULL), 0);
	assert_string_equal(c.stage1_name, "n");
	assert_string_equal(c.stage1_version, "1");
	assert_string_equal(c.stage1_location, "https://h/x.aci");
	assert_int_equal(
		parse(STAGE1(",\"options\":{\"a\":\"8Gi\",\"b\":\"x\"}"), CONFIG_STAGE1, &c, NULL),
		0);
	assert_int_equal(c.stage1_options.n, 2);
	assert_string_equal(c.stage1_options.v[0], "a=8Gi");
	assert_string_equal(c.stage1_options.v[1], "b=x");
	assert_int_equal(parse(STAGE1(",\"options\":{\"a\":\"1\"}"), CONFIG_STAGE1, &c, NULL),
			 -EEXIST);
	assert_int_equal(parse(STAGE1(",\"options\":{\"c\":1}"), CONFIG_STAGE1, &c, NULL),
			 -EBADMSG);
	assert_int_equal(parse(STAGE1(",\"options\":{\"c=d\":\"\"}"), CONFIG_STAGE1, &c, NULL),
			 -EBADMSG);
	assert_int_equal(parse(STAGE1(",\"options\":[]"), CONFIG_STAGE1, &c, NULL), -EBADMSG);
	assert_int_equal(
		parse(STAGE1(",\"annotations\":[\"cpus\",\"memory\"]"), CONFIG_STAGE1, &c, NULL),
		0);
	assert_int_equal(c.stage1_annotations.n, 2);
	assert_string_equal(c.stage1_annotations.v[1], "memory");
	assert_int_equal(parse(STAGE1(",\"container-roots\":\"\""), CONFIG_STAGE1, &c, NULL), 0);
	assert_null(c.stage1_roots);
	assert_int_equal(parse(STAGE1(",\"container-roots\":\"live\""), CONFIG_STAGE1, &c, NULL),
			 0);
	assert_string_equal(c.stage1_roots, CONFIG_ROOTS_LIVE);
	assert_int_equal(parse(STAGE1(",\"container-roots\":\"packed\""), CONFIG_STAGE1, &c, NULL),
			 -EEXIST);
}

static void test_images(void **state)
{
	(void)state;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	assert_int_equal(parse(IMAGES(",\"compression\":\"\""), CONFIG_IMAGES, &c, NULL), 0);
	assert_null(c.images_compression);
	assert_int_equal(parse(IMAGES(",\"compression\":\"zstd:3\""), CONFIG_IMAGES, &c, NULL), 0);
	assert_int_equal(parse(IMAGES(",\"maxBytes\":\"128Gi\""), CONFIG_IMAGES, &c, NULL), 0);
	assert_string_equal(c.images_compression, "zstd:3");
	assert_string_equal(c.images_max_bytes, "128Gi");
	config_drop(&c, CONFIG_IMAGES);
	assert_null(c.images_compression);
	assert_null(c.images_max_bytes);
}

/* Each is said of a file that comes after one with domain "twice", registry "twice" and so on. */
static const struct {
	unsigned part;
	const char *text, *error;
} bad_files[] = {
	{ CONFIG_AUTH, "", "it is not an object in valid JSON (correct it)" },
	{ CONFIG_AUTH, "{", "it is not an object in valid JSON (correct it)" },
	{ CONFIG_AUTH, "[]", "it is not an object in valid JSON (correct it)" },
	{ CONFIG_AUTH, BASIC_AUTH("[\"a\"]") "x",
	  "it is not an object in valid JSON (correct it)" },
	{ CONFIG_AUTH, "{\"rktVersion\":\"v1\"}", "\"rktKind\" is missing (add it)" },
	{ CONFIG_AUTH, "{\"rktKind\":\"\"}", "\"rktKind\" is missing (add it)" },
	{ CONFIG_AUTH, "{\"rktKind\":1}",
	  "\"rktKind\" is not a string of at most 64 bytes of UTF-8 (correct it)" },
	{ CONFIG_AUTH, "{\"rktKind\":\"auth\"}", "\"rktVersion\" is missing (add it)" },
	{ CONFIG_AUTH, "{\"rktKind\":\"auth\",\"rktVersion\":\"v2\"}",
	  "unknown version \"v2\" (write \"v1\")" },
	{ CONFIG_AUTH, FILE_OF("net", ""),
	  "unknown kind \"net\" (auth.d takes \"auth\" and \"dockerAuth\")" },
	{ CONFIG_AUTH, PATHS(""),
	  "kind \"paths\" does not belong into auth.d (move it to paths.d)" },
	{ CONFIG_PATHS, DOCKER(""),
	  "kind \"dockerAuth\" does not belong into paths.d (move it to auth.d)" },
	{ CONFIG_STAGE1, FILE_OF("x", ""), "unknown kind \"x\" (stage1.d takes \"stage1\")" },
	{ CONFIG_AUTH, AUTH(""), "\"type\" is missing (add it)" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"digest\""),
	  "unknown auth type \"digest\" (use \"basic\", \"oauth\" or \"aws\")" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"basic\""), "\"credentials\" is not an object (add it)" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"basic\",\"credentials\":{\"user\":\"u\"}"),
	  "\"credentials\": \"password\" is missing (add it)" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"oauth\",\"credentials\":{\"token\":[]}"),
	  "\"credentials\": \"token\" is not a string of at most 8192 bytes of UTF-8 (correct it)" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"aws\",\"credentials\":{\"accessKeyID\":\"k\"}"),
	  "\"credentials\": \"secretAccessKey\" is missing (add it)" },
	{ CONFIG_AUTH, AUTH(",\"type\":\"basic\"" BASIC),
	  "\"domains\" is not a list of 1 to 256 names of hosts, each of at most 259 bytes (correct it)" },
	{ CONFIG_AUTH, BASIC_AUTH("[]"), "\"domains\" is not a list of 1 to 256" },
	{ CONFIG_AUTH, BASIC_AUTH("\"a\""), "\"domains\" is not a list of 1 to 256" },
	{ CONFIG_AUTH, BASIC_AUTH("[\"\"]"), "\"domains\" is not a list of 1 to 256" },
	{ CONFIG_AUTH, BASIC_AUTH("[\"a\\nb\"]"), "\"domains\" is not a list of 1 to 256" },
	{ CONFIG_AUTH, BASIC_AUTH("[\"a\",\"twice\"]"),
	  "auth for domain \"twice\" is already specified in this directory (keep one of the two)" },
	{ CONFIG_AUTH, BASIC_AUTH("[\"a\",\"a\"]"), "auth for domain \"a\" is already specified" },
	{ CONFIG_AUTH, DOCKER(",\"registries\":[\"twice\"]" BASIC),
	  "auth for registry \"twice\" is already specified in this directory (keep one of the two)" },
	{ CONFIG_AUTH, DOCKER(",\"domains\":[\"a\"]" BASIC),
	  "\"registries\" is not a list of 1 to 256" },
	{ CONFIG_PATHS, PATHS(",\"data\":\"d\""),
	  "\"data\" is not an absolute path (write it as /PATH)" },
	{ CONFIG_PATHS, PATHS(",\"data\":\"/e\""),
	  "\"data\" is already specified in this directory (keep one of the two)" },
	{ CONFIG_PATHS, PATHS(",\"data\":\"/\\u0000\""),
	  "\"data\" is not a string of at most 4095 bytes of UTF-8 (correct it)" },
	{ CONFIG_PATHS, PATHS(",\"stage1-images\":\"./x\""),
	  "\"stage1-images\" is not an absolute path" },
	{ CONFIG_PATHS, PATHS(",\"cni-plugins\":\"/x\""),
	  "\"cni-plugins\" is not a list of at most 16 absolute paths (correct it)" },
	{ CONFIG_PATHS, PATHS(",\"cni-plugins\":[\"/x\",\"y\"]"), "\"cni-plugins\" is not a list" },
	{ CONFIG_PATHS,
	  PATHS(",\"cni-plugins\":[\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\","
		"\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\",\"/\"]"),
	  "\"cni-plugins\" is not a list" },
	{ CONFIG_STAGE1, STAGE1(",\"annotations\":{\"memory\":true}"),
	  "\"annotations\" is not a list of at most 3 of \"cpus\", \"kernel\" and \"memory\" (correct it)" },
	{ CONFIG_STAGE1, STAGE1(",\"annotations\":[\"\"]"), "\"annotations\" is not a list" },
	{ CONFIG_STAGE1, STAGE1(",\"container-roots\":\"alive\""),
	  "\"container-roots\" is neither \"live\" nor \"packed\"" },
	{ CONFIG_STAGE1, STAGE1(",\"container-roots\":true"), "\"container-roots\"" },
	{ CONFIG_STAGE1, STAGE1(",\"annotations\":[\"memory\",\"cpu\"]"),
	  "\"annotations\" is not a list" },
	{ CONFIG_PATHS, PATHS(",\"cni-plugins\":[\"/x\"]"),
	  "\"cni-plugins\" is already specified in this directory (keep one of the two)" },
	{ CONFIG_STAGE1, STAGE1(",\"name\":\"n\""),
	  "\"name\" without \"version\" (give both or none)" },
	{ CONFIG_STAGE1, STAGE1(",\"version\":\"1\""),
	  "\"version\" without \"name\" (give both or none)" },
	{ CONFIG_STAGE1, STAGE1(",\"location\":\"x\""),
	  "location \"x\": default stage1 image location is either a relative path" },
	{ CONFIG_STAGE1, STAGE1(",\"location\":\"/y\""),
	  "the \"location\" of stage1 is already specified in this directory (keep one of the two)" },
	{ CONFIG_STAGE1, STAGE1(",\"name\":\"n\",\"version\":\"1\""),
	  "the \"name\" of stage1 is already specified in this directory" },
	{ CONFIG_IMAGES, IMAGES(",\"compression\":\"lz4\""),
	  "\"compression\" is already specified in this directory (keep one of the two)" },
	{ CONFIG_IMAGES, IMAGES(",\"maxBytes\":1"),
	  "\"maxBytes\" is not a string of at most 63 bytes of UTF-8 (correct it)" },
	{ CONFIG_IMAGES, STAGE1(""), "kind \"stage1\" does not belong into images.d" },
	{ 0, "{}", "no such part of the configuration" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_files); i++) {
		CLEANUP(config_deinit) struct config c;
		struct err e = ERR_INIT;
		config_init(&c);
		assert_int_equal(parse(BASIC_AUTH("[\"twice\"]"), CONFIG_AUTH, &c, NULL), 0);
		assert_int_equal(
			parse(IMAGES(",\"compression\":\"plain\""), CONFIG_IMAGES, &c, NULL), 0);
		assert_int_equal(
			parse(DOCKER(",\"registries\":[\"twice\"]" BASIC), CONFIG_AUTH, &c, NULL),
			0);
		assert_int_equal(parse(PATHS(",\"data\":\"/d\",\"cni-plugins\":[\"/p\"]"),
				       CONFIG_PATHS, &c, NULL),
				 0);
		assert_int_equal(
			parse(STAGE1(",\"name\":\"n\",\"version\":\"1\",\"location\":\"/x\""),
			      CONFIG_STAGE1, &c, NULL),
			0);
		int r = parse(bad_files[i].text, bad_files[i].part, &c, &e);
		if (r >= 0 || strncmp(e.text, bad_files[i].error, strlen(bad_files[i].error)) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", bad_files[i].text, e.text,
				 bad_files[i].error);
		assert_int_equal(e.code, r);
	}
}

/* @count domains, the first of @len bytes. */
static int parse_domains(size_t count, size_t len)
{
	CLEANUP(config_deinit) struct config c;
	cleanup_buf struct buf text;
	char first[AUTH_HOST_MAX + 2] = "";
	config_init(&c);
	buf_init(&text, CONFIG_FILE_MAX);
	memset(first, 'x', len);
	buf_printf(&text,
		   "{\"rktVersion\":\"v1\",\"rktKind\":\"auth\",\"type\":\"basic\"" BASIC
		   ",\"domains\":[\"%s\"",
		   first);
	for (size_t i = 1; i < count; i++)
		buf_printf(&text, ",\"%zu\"", i);
	assert_int_equal(buf_puts(&text, "]}"), 0);
	int r = config_parse(buf_data(&text), buf_len(&text), CONFIG_AUTH, &c, NULL);
	assert_true(r < 0 || c.auth.n == count);
	return r;
}

/* A file with the member @key of @len bytes: @start, and 'x'. */
static int parse_long(const char *kind, unsigned part, const char *key, const char *start,
		      size_t len)
{
	CLEANUP(config_deinit) struct config c;
	cleanup_buf struct buf text;
	config_init(&c);
	buf_init(&text, CONFIG_FILE_MAX);
	buf_printf(&text, "{\"rktVersion\":\"v1\",\"rktKind\":\"%s\",%s\":\"%s", kind, key, start);
	for (size_t i = strlen(start); i < len; i++)
		buf_puts(&text, "x");
	buf_puts(&text, part == CONFIG_AUTH ? "\"}}" : "\",\"version\":\"1\"}");
	return config_parse(buf_data(&text), buf_len(&text), part, &c, NULL);
}

static void test_limits(void **state)
{
	(void)state;
	static const char token[] =
		"\"type\":\"oauth\",\"domains\":[\"a\"],\"credentials\":{\"token";
	assert_int_equal(parse_domains(CONFIG_DOMAINS_MAX, 3), 0);
	assert_int_equal(parse_domains(CONFIG_DOMAINS_MAX + 1, 3), -EBADMSG);
	assert_int_equal(parse_domains(1, AUTH_HOST_MAX), 0);
	assert_int_equal(parse_domains(1, AUTH_HOST_MAX + 1), -EBADMSG);
	assert_int_equal(parse_long("auth", CONFIG_AUTH, token, "", AUTH_SECRET_MAX), 0);
	assert_int_equal(parse_long("auth", CONFIG_AUTH, token, "", AUTH_SECRET_MAX + 1), -EBADMSG);
	assert_int_equal(parse_long("paths", CONFIG_PATHS, "\"data", "/", CONFIG_PATH_MAX), 0);
	assert_int_equal(parse_long("paths", CONFIG_PATHS, "\"data", "/", CONFIG_PATH_MAX + 1),
			 -EBADMSG);
	assert_int_equal(parse_long("images", CONFIG_IMAGES, "\"maxBytes", "", CONFIG_SETTING_MAX),
			 0);
	assert_int_equal(
		parse_long("images", CONFIG_IMAGES, "\"maxBytes", "", CONFIG_SETTING_MAX + 1),
		-EBADMSG);
	assert_int_equal(parse_long("stage1", CONFIG_STAGE1, "\"name", "n", CONFIG_NAME_MAX), 0);
	assert_int_equal(parse_long("stage1", CONFIG_STAGE1, "\"name", "n", CONFIG_NAME_MAX + 1),
			 -EBADMSG);
}

static void test_size(void **state)
{
	(void)state;
	static char text[CONFIG_FILE_MAX + 1];
	CLEANUP(config_deinit) struct config c;
	struct err e = ERR_INIT;
	config_init(&c);
	memset(text, ' ', sizeof(text));
	memcpy(text, PATHS(""), strlen(PATHS("")));
	assert_int_equal(config_parse(text, CONFIG_FILE_MAX, CONFIG_PATHS, &c, &e), 0);
	assert_int_equal(config_parse(text, sizeof(text), CONFIG_PATHS, &c, &e), -EFBIG);
	assert_string_equal(e.text, "it has more than 65536 bytes (split it)");
}

static int parse_all(void *ctx)
{
	(void)ctx;
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	int r = parse(AUTH(",\"type\":\"aws\",\"domains\":[\"a\",\"b\"],\"credentials\":{"
			   "\"accessKeyID\":\"k\",\"secretAccessKey\":\"s\",\"awsRegion\":\"r\"}"),
		      CONFIG_AUTH, &c, NULL);
	if (r == 0)
		r = parse(DOCKER(",\"registries\":[\"a\"]" BASIC), CONFIG_AUTH, &c, NULL);
	if (r == 0)
		r = parse(PATHS(",\"data\":\"/d\",\"stage1-images\":\"/i\""), CONFIG_PATHS, &c,
			  NULL);
	if (r == 0)
		r = parse(STAGE1(",\"name\":\"n\",\"version\":\"1\",\"location\":\"/x\""),
			  CONFIG_STAGE1, &c, NULL);
	if (r == 0)
		r = parse(IMAGES(",\"compression\":\"lz4\",\"maxBytes\":\"1Gi\""), CONFIG_IMAGES,
			  &c, NULL);
	return r;
}

static void test_short_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(parse_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_auth),         fixture_test(test_docker_auth),
		fixture_test(test_bad),          fixture_test(test_paths_and_stage1),
		fixture_test(test_limits),       fixture_test(test_size),
		fixture_test(test_short_memory), fixture_test(test_images),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
