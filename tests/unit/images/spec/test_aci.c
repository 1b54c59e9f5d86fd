/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/aci.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/cmocka.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define HEAD "{\"acKind\":\"ImageManifest\",\"acVersion\":\"0.8.11\",\"name\":\"example.com/app\""

static int parse(const char *text, struct aci_manifest *m, struct err *e)
{
	aci_manifest_init(m);
	*e = ERR_INIT;
	return aci_manifest_parse(text, strlen(text), m, e);
}

static void check_fails(const char *text, int code, const char *want)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct err e;
	assert_int_equal(parse(text, &m, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static const char full[] = HEAD
	",\"labels\":[{\"name\":\"version\",\"value\":\"1.2\"},{\"name\":\"os\",\"value\":\"linux\"}],"
	"\"app\":{\"exec\":[\"/bin/a\",\"b\"],\"user\":\"u\",\"group\":\"7\",\"workingDirectory\":\"/w\","
	"\"environment\":[{\"name\":\"A\",\"value\":\"1=2\"},{\"name\":\"B\",\"value\":\"\"}]},"
	"\"dependencies\":[{\"imageName\":\"example.com/low\",\"imageID\":\"sha512-0a\"},"
	"{\"imageName\":\"example.com/high\",\"labels\":[{\"name\":\"version\",\"value\":\"3\"}]}],"
	"\"pathWhitelist\":[\"/bin/a\",\"/etc\"]}";

static void test_full(void **state)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct err e;
	(void)state;
	assert_int_equal(parse(full, &m, &e), 0);
	assert_string_equal(m.name.name, "example.com/app");
	assert_string_equal(acname_get(&m.name, "version"), "1.2");
	assert_int_equal(m.exec.n, 2);
	assert_string_equal(m.exec.v[1], "b");
	assert_string_equal(m.user, "u:7");
	assert_string_equal(m.working_dir, "/w");
	assert_int_equal(m.env.n, 2);
	assert_string_equal(m.env.v[0], "A=1=2");
	assert_string_equal(m.env.v[1], "B=");
	assert_int_equal(m.n_dependencies, 2);
	assert_string_equal(m.dependencies[0].name.name, "example.com/low");
	assert_string_equal(m.dependencies[0].key, "0a");
	assert_string_equal(m.dependencies[1].key, "");
	assert_string_equal(acname_get(&m.dependencies[1].name, "version"), "3");
	assert_int_equal(m.whitelist.n, 2);
	assert_int_equal(aci_check_platform(&m, &e), -EOPNOTSUPP); /* no arch */
	assert_int_equal(acname_set(&m.name, "arch", acname_host_arch, &e), 0);
	assert_int_equal(aci_check_platform(&m, &e), 0);
}

/* An image without an app is one to build on. */
static void test_least(void **state)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct err e;
	(void)state;
	assert_int_equal(parse(HEAD "}", &m, &e), 0);
	assert_int_equal(m.exec.n, 0);
	assert_string_equal(m.user, "");
	assert_int_equal(m.n_dependencies, 0);
	assert_int_equal(aci_check_platform(&m, &e), -EOPNOTSUPP); /* it says nothing */
}

static void test_platform(void **state)
{
	static const char os[] = "{\"name\":\"os\",\"value\":\"linux\"}";
	static const struct {
		const char *os, *arch, *want;
	} cases[] = {
		{ "", "{\"name\":\"arch\",\"value\":\"x\"}",
		  "missing os label in the image manifest" },
		{ os, "", "missing arch label in the image manifest" },
		{ "{\"name\":\"os\",\"value\":\"freebsd\"}",
		  ",{\"name\":\"arch\",\"value\":\"amd64\"}",
		  "bad os \"freebsd\" (must be one of: [linux])" },
		{ os, ",{\"name\":\"arch\",\"value\":\"armv6l\"}",
		  "bad arch \"armv6l\" for linux (must be one of: [" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(aci_manifest_deinit) struct aci_manifest m;
		struct err e = ERR_INIT;
		char text[256];
		snprintf(text, sizeof(text), HEAD ",\"labels\":[%s%s]}", cases[i].os,
			 cases[i].arch);
		assert_int_equal(parse(text, &m, &e), 0);
		assert_int_equal(aci_check_platform(&m, &e), -EOPNOTSUPP);
		assert_non_null(strstr(e.text, cases[i].want));
	}
}

static void test_wrong(void **state)
{
	static const struct {
		const char *text, *want;
		int code;
	} cases[] = {
		{ "", "is not a JSON object", -EBADMSG },
		{ "[]", "is not a JSON object", -EBADMSG },
		{ "{}", "\"acKind\" is not \"ImageManifest\"", -EBADMSG },
		{ "{\"acKind\":\"PodManifest\"}", "\"acKind\"", -EBADMSG },
		{ "{\"acKind\":\"ImageManifest\"}", "no field \"acVersion\"", -EBADMSG },
		{ "{\"acKind\":\"ImageManifest\",\"acVersion\":\"1.0\"}", "husk reads 0.x",
		  -EOPNOTSUPP },
		{ "{\"acKind\":\"ImageManifest\",\"acVersion\":\"0.8\"}", "no field \"name\"",
		  -EBADMSG },
		{ "{\"acKind\":\"ImageManifest\",\"acVersion\":\"0.8\",\"name\":\"A b\"}",
		  "is not a name", -EBADMSG },
		{ HEAD ",\"labels\":{}}", "\"labels\" has a wrong type", -EBADMSG },
		{ HEAD ",\"labels\":[{\"name\":\"os\"}]}", "\"labels\"", -EBADMSG },
		{ HEAD ",\"app\":{\"exec\":\"x\"}}", "\"exec\"", -EBADMSG },
		{ HEAD ",\"app\":{\"exec\":[\"x\"]}}", "no field \"user\"", -EBADMSG },
		{ HEAD ",\"app\":{\"user\":\"0\"}}", "no field \"group\"", -EBADMSG },
		{ HEAD ",\"app\":{\"user\":\"0:0\",\"group\":\"0\"}}", "\"user\"", -EBADMSG },
		{ HEAD ",\"app\":{\"user\":\"\",\"group\":\"0\"}}", "\"user\"", -EBADMSG },
		{ HEAD
		  ",\"app\":{\"user\":\"0\",\"group\":\"0\",\"environment\":[{\"name\":\"A=\",\"value\":\"\"}]}}",
		  "\"environment\"", -EBADMSG },
		{ HEAD ",\"dependencies\":[{}]}", "no field \"imageName\"", -EBADMSG },
		{ HEAD ",\"dependencies\":[{\"imageName\":\"a\",\"imageID\":\"sha256-00\"}]}",
		  "\"imageID\"", -EBADMSG },
		{ HEAD ",\"dependencies\":[{\"imageName\":\"a\",\"imageID\":\"sha512-\"}]}",
		  "\"imageID\"", -EBADMSG },
		{ HEAD ",\"pathWhitelist\":[\"etc\"]}", "\"pathWhitelist\"", -EBADMSG },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_fails(cases[i].text, cases[i].code, cases[i].want);
}

/* A list of @n times @item, as the field @field. */
static void make_list(struct buf *out, const char *field, const char *item, size_t n)
{
	buf_init(out, 2 * ACI_JSON_MAX);
	assert_int_equal(buf_printf(out, HEAD ",\"%s\":[", field), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(out, "%s%s", i ? "," : "", item), 0);
	assert_int_equal(buf_puts(out, "]}"), 0);
}

static int parse_list(const char *field, const char *item, size_t n, struct err *e)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	CLEANUP(buf_deinit) struct buf text;
	make_list(&text, field, item, n);
	aci_manifest_init(&m);
	*e = ERR_INIT;
	return aci_manifest_parse(buf_data(&text), buf_len(&text), &m, e);
}

static void test_limits(void **state)
{
	struct err e;
	(void)state;
	assert_int_equal(
		parse_list("dependencies", "{\"imageName\":\"a\"}", ACI_DEPENDENCIES_MAX, &e), 0);
	assert_int_equal(
		parse_list("dependencies", "{\"imageName\":\"a\"}", ACI_DEPENDENCIES_MAX + 1, &e),
		-E2BIG);
	assert_int_equal(parse_list("pathWhitelist", "\"/a\"", ACI_WHITELIST_MAX, &e), 0);
	assert_int_equal(parse_list("pathWhitelist", "\"/a\"", ACI_WHITELIST_MAX + 1, &e), -E2BIG);
	assert_int_equal(parse_list("unknown", "{}", 32766, &e), 0); /* and two around them */
	assert_int_equal(parse_list("unknown", "{}", 32767, &e), -E2BIG);
	assert_non_null(strstr(e.text, "objects and lists"));
	assert_int_equal(parse_list("unknown", "\"0123456789abcdef\"", ACI_JSON_MAX / 16, &e),
			 -E2BIG);
	assert_non_null(strstr(e.text, "is larger than"));
}

static int parse_again(void *ctx)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct err e;
	(void)ctx;
	return parse(full, &m, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(parse_again, NULL); /* vasprintf(3) */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_full),     fixture_test(test_least),
		fixture_test(test_platform), fixture_test(test_wrong),
		fixture_test(test_limits),   fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
