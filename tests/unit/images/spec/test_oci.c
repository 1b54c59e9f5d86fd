/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/oci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define HEX         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST      "\"sha256:" HEX "\""
#define BLOB        "\"digest\":" DIGEST ",\"size\":3"
#define CONFIG_TYPE "\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
#define LAYER_TYPE  "\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\","
#define MANIFEST(layers) \
	"{\"schemaVersion\":2,\"config\":{" CONFIG_TYPE BLOB "},\"layers\":[" layers "]}"
#define LAYER  "{" LAYER_TYPE BLOB "}"
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" DIGEST "]}"

static int layout(const char *text, struct err *e)
{
	return oci_layout_parse(text, strlen(text), e);
}

static int index_of(const char *text, struct err *e)
{
	CLEANUP(oci_index_deinit) struct oci_index i = OCI_INDEX_INIT;
	return oci_index_parse(text, strlen(text), &i, e);
}

static int manifest(const char *text, struct err *e)
{
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	return oci_manifest_parse(text, strlen(text), &m, e);
}

static int config(const char *text, struct err *e)
{
	CLEANUP(oci_config_deinit) struct oci_config c;
	oci_config_init(&c);
	return oci_config_parse(text, strlen(text), &c, e);
}

static int docker(const char *text, struct err *e)
{
	CLEANUP(docker_manifest_deinit) struct docker_manifest m = DOCKER_MANIFEST_INIT;
	return docker_manifest_parse(text, strlen(text), &m, e);
}

static void check_fails(int (*parse)(const char *, struct err *), const char *text, int code,
			const char *want)
{
	struct err e = ERR_INIT;
	assert_int_equal(parse(text, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static void test_layout(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	assert_int_equal(layout("{\"imageLayoutVersion\":\"1.0.0\"}", &e), 0);
	check_fails(layout, "{}", -EBADMSG, "no field \"imageLayoutVersion\"");
	check_fails(layout, "{\"imageLayoutVersion\":\"2.0.0\"}", -EOPNOTSUPP, "version 2.0.0");
	check_fails(layout, "[]", -EBADMSG, "not a JSON object");
	check_fails(layout, "", -EBADMSG, "not a JSON object");
}

static void test_index(void **state)
{
	(void)state;
	static const char text[] =
		"{\"manifests\":[{\"mediaType\":\"x\"," BLOB
		",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},{" BLOB
		",\"annotations\":{\"org.opencontainers.image.ref.name\":\"v1\","
		"\"io.containerd.image.name\":\"a/b:v1\"}},{" BLOB
		",\"annotations\":{\"org.opencontainers.image.ref.name\":\"\\u001b[31m\"}},{" BLOB
		",\"annotations\":{\"org.opencontainers.image.ref.name\":\"\\u65e5:1\","
		"\"io.containerd.image.name\":\"a\\u202eb\"}}]}";
	struct err e = ERR_INIT;
	CLEANUP(oci_index_deinit) struct oci_index i = OCI_INDEX_INIT;
	assert_int_equal(oci_index_parse(text, strlen(text), &i, &e), 0);
	assert_int_equal(i.n, 4);
	assert_string_equal(i.manifests[3].tag, "\xe6\x97\xa5:1");
	assert_string_equal(i.manifests[3].full_name, ""); /* it would be read in another order */
	assert_true(i.manifests[0].has_platform);
	assert_string_equal(i.manifests[0].platform.architecture, "arm64");
	assert_string_equal(i.manifests[0].media_type, "x");
	assert_int_equal(i.manifests[0].size, 3);
	assert_string_equal(i.manifests[0].digest.hex, HEX);
	assert_string_equal(i.manifests[1].tag, "v1");
	assert_string_equal(i.manifests[1].full_name, "a/b:v1");
	assert_string_equal(i.manifests[2].tag, ""); /* not printable: as if it were not there */
	check_fails(index_of, "{}", -EBADMSG, "no list \"manifests\"");
	check_fails(index_of, "{\"manifests\":{}}", -EBADMSG, "no list");
	check_fails(index_of, "{\"manifests\":[null]}", -EBADMSG, "no field \"digest\"");
	check_fails(index_of, "{\"manifests\":[7]}", -EBADMSG, "no field \"digest\"");
	check_fails(index_of, "{\"manifests\":[{\"digest\":\"x\"}]}", -EBADMSG, "malformed digest");
	check_fails(index_of, "{\"manifests\":[{\"digest\":\"sha512:ab\"}]}", -EOPNOTSUPP,
		    "not sha256");
	check_fails(index_of, "{\"manifests\":[{\"digest\":" DIGEST "}]}", -EBADMSG, "\"size\"");
	check_fails(index_of, "{\"manifests\":[{\"digest\":" DIGEST ",\"size\":-1}]}", -EBADMSG,
		    "\"size\"");
	check_fails(index_of, "{\"manifests\":[{" BLOB ",\"platform\":{\"os\":7}}]}", -EBADMSG,
		    "\"os\"");
}

static void test_manifest(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	static const char text[] = MANIFEST(LAYER "," LAYER);
	assert_int_equal(oci_manifest_parse(text, strlen(text), &m, &e), 0);
	assert_int_equal(m.n_layers, 2);
	assert_string_equal(m.config.digest.hex, HEX);
	assert_false(m.is_rootfs);
	static const char *const yes =
		"{\"schemaVersion\":2,\"config\":{" CONFIG_TYPE BLOB "},\"layers\":[" LAYER
		"],\"annotations\":{\"io.husk.rootfs\":\"true\"}}";
	static const char *const other =
		"{\"schemaVersion\":2,\"config\":{" CONFIG_TYPE BLOB "},\"layers\":[" LAYER
		"],\"annotations\":[\"io.husk.rootfs\"]}";
	CLEANUP(oci_manifest_deinit) struct oci_manifest rootfs = OCI_MANIFEST_INIT;
	CLEANUP(oci_manifest_deinit) struct oci_manifest list = OCI_MANIFEST_INIT;
	assert_int_equal(oci_manifest_parse(yes, strlen(yes), &rootfs, &e), 0);
	assert_true(rootfs.is_rootfs);
	assert_int_equal(oci_manifest_parse(other, strlen(other), &list, &e), 0);
	assert_false(list.is_rootfs);
	check_fails(manifest, "{\"schemaVersion\":1}", -EOPNOTSUPP, "schema 1");
	check_fails(manifest, "{\"schemaVersion\":2}", -EBADMSG, "\"config\"");
	check_fails(manifest, MANIFEST(""), -EBADMSG, "the image has no layers");
	check_fails(manifest, "{\"schemaVersion\":2,\"config\":{" CONFIG_TYPE BLOB "}}", -EBADMSG,
		    "no list \"layers\"");
	check_fails(manifest, MANIFEST("{" BLOB "}"), -EOPNOTSUPP, "layer 1 has the unknown media");
	check_fails(manifest, MANIFEST(LAYER ",{\"mediaType\":\"text/html\"," BLOB "}"),
		    -EOPNOTSUPP, "layer 2 has the unknown media type \"text/html\"");
	check_fails(manifest,
		    "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/x.helm\"," BLOB
		    "},\"layers\":[]}",
		    -EOPNOTSUPP, "not a container image but \"application/x.helm\"");
}

/* More ports than anybody would name. */
static void test_many_ports(void **state)
{
	CLEANUP(oci_config_deinit) struct oci_config c;
	cleanup_buf struct buf text;
	struct err e = ERR_INIT;
	(void)state;
	oci_config_init(&c);
	buf_init(&text, OCI_JSON_MAX);
	assert_int_equal(buf_puts(&text, "{" ROOTFS ",\"config\":{\"ExposedPorts\":{\"1/tcp\":{}"),
			 0);
	for (int i = 16384; i <= 32768; i++)
		assert_int_equal(buf_printf(&text, ",\"%d/udp\":{}", i), 0);
	assert_int_equal(buf_puts(&text, "}}}"), 0);
	assert_int_equal(oci_config_parse(buf_data(&text), buf_len(&text), &c, &e), 0);
	assert_int_equal(c.ports.n, IMAGE_PORTS_MAX);
	assert_string_equal(c.ports.v[0], "1/tcp");
}

/* One that is none is no reason not to run the image. */
static void test_stop_signal(void **state)
{
	static const struct {
		const char *json;
		int number;
	} samples[] = {
		{ "\"SIGQUIT\"", 3 }, { "\"28\"", 28 },       { "\"\"", 0 },
		{ "null", 0 },        { "\"SIGFOO\"", 0 },    { "\"65\"", 0 },
		{ "3", 0 },           { "[\"SIGQUIT\"]", 0 }, { "\"SIGQUITSIGQUITSIGQUIT\"", 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		CLEANUP(oci_config_deinit) struct oci_config c;
		struct err e = ERR_INIT;
		char text[512];
		oci_config_init(&c);
		snprintf(text, sizeof(text), "{\"config\":{\"StopSignal\":%s}," ROOTFS "}",
			 samples[i].json);
		assert_int_equal(oci_config_parse(text, strlen(text), &c, &e), 0);
		assert_int_equal(c.stop_signal, samples[i].number);
	}
}

static void test_config(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(oci_config_deinit) struct oci_config c;
	oci_config_init(&c);
	static const char text[] =
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=b\",\"C=\"],"
		"\"Entrypoint\":[\"/e\"],\"Cmd\":[\"c\",\"d\"],\"User\":\"u:g\","
		"\"ExposedPorts\":{\"80/tcp\":{},\"53/udp\":null,\"9\":{},\"1-9/tcp\":{},\"x\":{}},"
		"\"WorkingDir\":\"/w\",\"StopSignal\":\"SIGRTMIN+3\"}," ROOTFS "}";
	assert_int_equal(oci_config_parse(text, strlen(text), &c, &e), 0);
	assert_int_equal(c.env.n, 2);
	assert_string_equal(c.entrypoint.v[0], "/e");
	assert_string_equal(c.cmd.v[1], "d");
	assert_string_equal(c.user, "u:g");
	assert_string_equal(c.working_dir, "/w");
	assert_int_equal(c.stop_signal, 37);
	assert_int_equal(c.n_layers, 1);
	assert_int_equal(c.ports.n, 3); /* what has no name is no reason not to run it */
	assert_string_equal(c.ports.v[0], "80/tcp");
	assert_string_equal(c.ports.v[2], "9");
	/* All but the layers may be missing or null. */
	assert_int_equal(config("{" ROOTFS "}", &e), 0);
	assert_int_equal(config("{\"config\":null," ROOTFS "}", &e), 0);
	assert_int_equal(config("{\"config\":{\"Cmd\":null,\"Env\":null}," ROOTFS "}", &e), 0);
	assert_int_equal(config("{\"config\":{\"ExposedPorts\":[1]}," ROOTFS "}", &e), 0);
	check_fails(config, "{}", -EBADMSG, "rootfs.diff_ids");
	check_fails(config, "{\"rootfs\":{\"diff_ids\":[]}}", -EBADMSG, "has no layers");
	check_fails(config, "{\"rootfs\":{\"diff_ids\":[7]}}", -EBADMSG, "rootfs.diff_ids");
	check_fails(config, "{\"rootfs\":{\"diff_ids\":[\"md5:x\"]}}", -EOPNOTSUPP, "not sha256");
	check_fails(config, "{\"config\":{\"Cmd\":\"sh\"}," ROOTFS "}", -EBADMSG, "\"Cmd\"");
	check_fails(config, "{\"config\":{\"Cmd\":[\"a\\u0000b\"]}," ROOTFS "}", -EBADMSG,
		    "\"Cmd\"");
	check_fails(config, "{\"config\":{\"Env\":[7]}," ROOTFS "}", -EBADMSG, "\"Env\"");
	check_fails(config, "{\"config\":{\"User\":1}," ROOTFS "}", -EBADMSG, "\"User\"");
}

/* How others write "none". */
static void test_empty_commands(void **state)
{
	static const struct {
		const char *text;
		size_t n_entrypoint, n_cmd;
	} cases[] = {
		{ "\"Entrypoint\":[\"\"],\"Cmd\":[\"a\",\"b\"]", 0, 2 },
		{ "\"Entrypoint\":[\"a\"],\"Cmd\":[\"\"]", 1, 0 },
		{ "\"Entrypoint\":[\"\"],\"Cmd\":[\"\"]", 0, 0 },
		{ "\"Entrypoint\":[],\"Cmd\":[\"\",\"\"]", 0, 2 },
		{ "\"Entrypoint\":[\"a\",\"\"]", 2, 0 }, /* an argument may be empty */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(oci_config_deinit) struct oci_config c;
		char text[512];
		struct err e = ERR_INIT;
		oci_config_init(&c);
		snprintf(text, sizeof(text), "{\"config\":{%s}," ROOTFS "}", cases[i].text);
		assert_int_equal(oci_config_parse(text, strlen(text), &c, &e), 0);
		assert_int_equal(c.entrypoint.n, cases[i].n_entrypoint);
		assert_int_equal(c.cmd.n, cases[i].n_cmd);
	}
}

/* Members of the environment that set nothing are left out, wherever they are. */
static void test_nameless_environment(void **state)
{
	static const char text[] =
		"{\"config\":{\"Env\":[\"A\",\"B=1\",\"\",\"=x\",\"C=\",\"D\"]}," ROOTFS "}";
	static const char none[] = "{\"config\":{\"Env\":[\"A\",\"=\"]}," ROOTFS "}";
	CLEANUP(oci_config_deinit) struct oci_config c;
	struct err e = ERR_INIT;
	(void)state;
	oci_config_init(&c);
	assert_int_equal(oci_config_parse(text, strlen(text), &c, &e), 0);
	assert_int_equal(c.env.n, 2);
	assert_string_equal(c.env.v[0], "B=1");
	assert_string_equal(c.env.v[1], "C=");
	assert_null(c.env.v[2]);
	oci_config_deinit(&c);
	assert_int_equal(oci_config_parse(none, strlen(none), &c, &e), 0);
	assert_int_equal(c.env.n, 0);
}

static void test_docker(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	CLEANUP(docker_manifest_deinit) struct docker_manifest m = DOCKER_MANIFEST_INIT;
	static const char text[] = "[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\",\"b:2\"],"
				   "\"Layers\":[\"l/layer.tar\"]},"
				   "{\"Config\":\"d\",\"RepoTags\":null,\"Layers\":[]}]";
	assert_int_equal(docker_manifest_parse(text, strlen(text), &m, &e), 0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.images[0].tags.v[1], "b:2");
	assert_string_equal(m.images[0].layers.v[0], "l/layer.tar");
	assert_int_equal(m.images[1].tags.n, 0);
	check_fails(docker, "{}", -EBADMSG, "not a JSON list");
	check_fails(docker, "[{}]", -EBADMSG, "\"Config\"");
	check_fails(docker, "[{\"Config\":\"c\"}]", -EBADMSG, "\"Layers\"");
	check_fails(docker, "[{\"Config\":\"c\",\"RepoTags\":\"x\"}]", -EBADMSG, "\"RepoTags\"");
	check_fails(docker, "[{\"Config\":\"c\",\"RepoTags\":[\"a\\n\"]}]", -EBADMSG,
		    "\"RepoTags\"");
}

/* A document with @n times @item between @head and @tail. */
static char *repeat(const char *head, const char *item, size_t n, const char *tail)
{
	struct buf b;
	buf_init(&b, 64 * OCI_JSON_MAX);
	assert_int_equal(buf_puts(&b, head), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&b, "%s%s", i > 0 ? "," : "", item), 0);
	assert_int_equal(buf_puts(&b, tail), 0);
	return buf_take_string(&b);
}

/* @max items are fine, one more is not. */
static void check_limit(int (*parse)(const char *, struct err *), const char *head,
			const char *item, size_t max, const char *tail, const char *want)
{
	struct err e = ERR_INIT;
	cleanup_free char *at = repeat(head, item, max, tail);
	if (parse(at, &e) != 0)
		fail_msg("%s", e.text);
	cleanup_free char *beyond = repeat(head, item, max + 1, tail);
	check_fails(parse, beyond, -E2BIG, want);
}

static void test_counts(void **state)
{
	(void)state;
	check_limit(index_of, "{\"manifests\":[", "{" BLOB "}", OCI_MANIFESTS_MAX, "]}",
		    "1025 manifests, more than the 1024");
	check_limit(manifest, "{\"schemaVersion\":2,\"config\":{" CONFIG_TYPE BLOB "},\"layers\":[",
		    LAYER, OCI_LAYERS_MAX, "]}", "129 layers, more than the 128");
	check_limit(config, "{\"rootfs\":{\"diff_ids\":[", DIGEST, OCI_LAYERS_MAX, "]}}",
		    "more than 128 layers");
	check_limit(config, "{\"config\":{\"Env\":[", "\"A=\"", IMAGE_ENV_MAX, "]}," ROOTFS "}",
		    "more than 16384 members in \"Env\"");
	check_limit(config, "{\"config\":{\"Cmd\":[", "\"A\"", IMAGE_ARGS_MAX, "]}," ROOTFS "}",
		    "more than 65536 members in \"Cmd\"");
	check_limit(docker, "[{\"Config\":\"c\",\"Layers\":[", "\"l\"", OCI_LAYERS_MAX, "]}]",
		    "more than 128 layers");
	check_limit(docker, "[", "{\"Config\":\"c\",\"Layers\":[]}", OCI_MANIFESTS_MAX, "]",
		    "more than 1024 images");
	/* The outermost object and the list count, too. */
	check_limit(layout, "{\"imageLayoutVersion\":\"1.0.0\",\"x\":[", "[]",
		    OCI_CONTAINERS_MAX - 2, "]}", "more than 32768 objects and lists");
	/* Brackets in strings do not. */
	cleanup_free char *strings = repeat("{\"imageLayoutVersion\":\"1.0.0\",\"x\":[",
					    "\"\\\"[{[\"", OCI_CONTAINERS_MAX, "]}");
	struct err e = ERR_INIT;
	assert_int_equal(layout(strings, &e), 0);
}

/* A string field of @max bytes is fine, one more is not. */
static void check_length(int (*parse)(const char *, struct err *), const char *head, size_t max,
			 const char *tail, const char *want)
{
	struct err e = ERR_INIT;
	cleanup_free char *value = calloc(max + 2, 1);
	assert_non_null(value);
	memset(value, 'v', max);
	cleanup_free char *at = repeat(head, value, 1, tail);
	if (parse(at, &e) != 0)
		fail_msg("%s", e.text);
	value[max] = 'v';
	cleanup_free char *beyond = repeat(head, value, 1, tail);
	check_fails(parse, beyond, -EBADMSG, want);
}

static void test_lengths(void **state)
{
	(void)state;
	check_length(config, "{\"config\":{\"User\":\"", IMAGE_USER_MAX, "\"}," ROOTFS "}",
		     "\"User\"");
	check_length(config, "{\"config\":{\"WorkingDir\":\"", IMAGE_PATH_MAX, "\"}," ROOTFS "}",
		     "\"WorkingDir\"");
	check_length(config, "{\"config\":{\"Cmd\":[\"", IMAGE_ARG_MAX, "\"]}," ROOTFS "}",
		     "\"Cmd\"");
	check_length(config, "{\"os\":\"", OCI_PLATFORM_MAX, "\"," ROOTFS "}", "\"os\"");
	check_length(index_of, "{\"manifests\":[{" BLOB ",\"mediaType\":\"", OCI_MEDIA_TYPE_MAX,
		     "\"}]}", "\"mediaType\"");
	check_length(docker, "[{\"Layers\":[],\"Config\":\"", OCI_ENTRY_NAME_MAX, "\"}]",
		     "\"Config\"");
	check_length(docker, "[{\"Config\":\"c\",\"Layers\":[\"", OCI_ENTRY_NAME_MAX, "\"]}]",
		     "\"Layers\"");
	check_length(docker, "[{\"Config\":\"c\",\"Layers\":[],\"RepoTags\":[\"", IMAGE_NAME_MAX,
		     "\"]}]", "\"RepoTags\"");
	/* The whole document. */
	static const char head[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	static char text[OCI_JSON_MAX + 2];
	memset(text, ' ', OCI_JSON_MAX + 1);
	memcpy(text, head, strlen(head));
	text[OCI_JSON_MAX] = '\0';
	struct err e = ERR_INIT;
	assert_int_equal(layout(text, &e), 0);
	text[OCI_JSON_MAX] = ' ';
	text[OCI_JSON_MAX + 1] = '\0';
	check_fails(layout, text, -EBADMSG, "larger than 4194304 bytes");
}

static int parse_all(void *ctx)
{
	(void)ctx;
	struct err e = ERR_INIT;
	int r = index_of("{\"manifests\":[{" BLOB "}]}", &e);
	if (r == 0)
		r = manifest(MANIFEST(LAYER), &e);
	if (r == 0)
		r = config("{\"config\":{\"Env\":[\"A=b\"],\"Cmd\":[\"c\"]}," ROOTFS "}", &e);
	if (r == 0)
		r = docker("[{\"Config\":\"c\",\"RepoTags\":[\"a\"],\"Layers\":[\"l\"]}]", &e);
	return r;
}

static void test_allocation_failures(void **state)
{
	(void)state;
	for_each_failing_alloc(parse_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_layout),         fixture_test(test_index),
		fixture_test(test_manifest),       fixture_test(test_config),
		fixture_test(test_stop_signal),    fixture_test(test_many_ports),
		fixture_test(test_empty_commands), fixture_test(test_nameless_environment),
		fixture_test(test_docker),         fixture_test(test_counts),
		fixture_test(test_lengths),        fixture_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
