/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "stage1/net/cni/document.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static struct cni_config c;
static struct err e;

static int parse(const char *text)
{
	cni_config_deinit(&c);
	e = ERR_INIT;
	return cni_config_parse(text, strlen(text), &c, &e);
}

static void test_list(void **state)
{
	(void)state;
	assert_int_equal(parse("{\"name\":\"a\",\"cniVersion\":\"1.0.0\",\"disableCheck\":true,"
			       "\"plugins\":[{\"type\":\"bridge\"},{\"type\":\"portmap\"}]}"),
			 0);
	assert_string_equal(c.name, "a");
	assert_string_equal(c.version, "1.0.0");
	assert_true(c.disable_check && cni_config_has_check(&c));
	assert_int_equal(cni_config_plugins(&c), 2);
	assert_string_equal(cni_config_type(&c, 1), "portmap");
	cni_config_deinit(&c);
}

/* As rkt's users have them: no list, no version. */
static void test_single(void **state)
{
	(void)state;
	assert_int_equal(parse("{\"name\":\"a-1.b_\",\"type\":\"bridge\",\"ipam\":{}}"), 0);
	assert_string_equal(c.version, "0.3.1");
	assert_false(cni_config_has_check(&c));
	assert_int_equal(cni_config_plugins(&c), 1);
	assert_non_null(json_member(cni_config_plugin(&c, 0), "ipam"));
	cni_config_deinit(&c);
}

static void test_versions(void **state)
{
	static const char *const cases[][2] = {
		{ "0.1.0", "0.3.1" }, { "0.2.0", "0.3.1" }, { "0.3.0", "0.3.1" },
		{ "0.3.1", "0.3.1" }, { "0.4.0", "0.4.0" }, { "1.0.0", "1.0.0" },
	};
	char text[128];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text),
			 "{\"name\":\"a\",\"cniVersion\":\"%s\",\"type\":\"b\"}", cases[i][0]);
		assert_int_equal(parse(text), 0);
		assert_string_equal(c.version, cases[i][1]);
	}
	assert_int_equal(parse("{\"name\":\"a\",\"cniVersion\":\"1.1.0\",\"type\":\"b\"}"),
			 -EBADMSG);
	assert_string_equal(e.text,
			    "its \"cniVersion\" 1.1.0 is not known (0.3.1, 0.4.0 or 1.0.0)");
	cni_config_deinit(&c);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"name\":\"a\"}",
		"{\"type\":\"b\"}",
		"{\"name\":\"\",\"type\":\"b\"}",
		"{\"name\":\"-a\",\"type\":\"b\"}",
		"{\"name\":\"a/b\",\"type\":\"b\"}",
		"{\"name\":1,\"type\":\"b\"}",
		"{\"name\":\"a\",\"type\":\"\"}",
		"{\"name\":\"a\",\"type\":\"..\"}",
		"{\"name\":\"a\",\"type\":\"x/y\"}",
		"{\"name\":\"a\",\"type\":7}",
		"{\"name\":\"a\",\"type\":\"b\",\"capabilities\":[]}",
		"{\"name\":\"a\",\"type\":\"b\",\"cniVersion\":4}",
		"{\"name\":\"a\",\"type\":\"b\",\"disableCheck\":\"yes\"}",
		"{\"name\":\"a\",\"type\":\"b\",\"rate\":0.5}",
		"{\"name\":\"a\",\"plugins\":{}}",
		"{\"name\":\"a\",\"plugins\":[]}",
		"{\"name\":\"a\",\"plugins\":[1]}",
		"{\"name\":\"a\",\"plugins\":[{}]}",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse(bad[i]), -EBADMSG);
		assert_true(e.text[0]);
		assert_null(c.plugins);
	}
	/* What might replace a network is known by its name even if it cannot be used. */
	assert_int_equal(parse("{\"name\":\"a\",\"plugins\":[]}"), -EBADMSG);
	assert_string_equal(c.name, "a");
}

/* A list of @n plugins, with a name of @name_len letters, and @blanks behind. */
static int parse_sized(size_t n, size_t name_len, size_t blanks)
{
	static char text[2 * CNI_DOCUMENT_MAX];
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"name\":\"");
	memset(text + len, 'a', name_len);
	len += name_len;
	len += (size_t)snprintf(text + len, sizeof(text) - len, "\",\"plugins\":[");
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s{\"type\":\"b\"}",
					i > 0 ? "," : "");
	len += (size_t)snprintf(text + len, sizeof(text) - len, "]}");
	if (blanks > len) {
		memset(text + len, ' ', blanks - len);
		len = blanks;
	}
	cni_config_deinit(&c);
	return cni_config_parse(text, len, &c, &e);
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(parse_sized(CNI_PLUGINS_MAX, 1, 0), 0);
	assert_int_equal(parse_sized(CNI_PLUGINS_MAX + 1, 1, 0), -EBADMSG);
	assert_int_equal(parse_sized(1, CNI_NAME_MAX, 0), 0);
	assert_int_equal(parse_sized(1, CNI_NAME_MAX + 1, 0), -EBADMSG);
	assert_int_equal(parse_sized(1, 1, CNI_DOCUMENT_MAX), 0);
	assert_int_equal(parse_sized(1, 1, CNI_DOCUMENT_MAX + 1), -EBADMSG);
	cni_config_deinit(&c);
}

static int round_trip(void *ctx)
{
	CLEANUP(cni_config_deinit) struct cni_config again = { .name = "" };
	int r = parse(ctx);
	cleanup_json struct json_object *doc = r == 0 ? cni_config_write(&c) : NULL;
	if (r == 0)
		r = doc ? cni_config_read(doc, &again, &e) : -ENOMEM;
	if (r == 0 && (strcmp(again.name, c.name) != 0 || again.version != c.version))
		r = 1;
	cni_config_deinit(&c);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	char text[] = "{\"name\":\"a\",\"type\":\"b\",\"capabilities\":{\"ips\":true}}";
	for_each_failing_alloc(round_trip, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_list),    fixture_test(test_single), fixture_test(test_versions),
		fixture_test(test_refused), fixture_test(test_limits), fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
