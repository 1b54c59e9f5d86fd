/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/registry_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/support/fixture.h"

#define HEX "748bd6b19033eda7865b2bcf120bb5c3baf2fac06410434a49b76807f1352555"

static void check(const char *text, const char *canonical, const char *operand)
{
	struct registry_name n, again;
	struct err e = ERR_INIT;
	char out[REGISTRY_TEXT_MAX + 1], op[REGISTRY_OPERAND_MAX + 1];
	if (registry_name_parse(text, &n, &e) < 0)
		fail_msg("%s", e.text);
	registry_name_text(&n, out);
	assert_string_equal(out, canonical);
	registry_name_operand(&n, NULL, op);
	assert_string_equal(op, operand);
	assert_int_equal(registry_name_parse(out, &again, &e), 0);
	assert_memory_equal(&n, &again, sizeof(n));
}

static void check_fails(const char *text, int code, const char *want)
{
	struct registry_name n = { .registry = "untouched" };
	struct err e = ERR_INIT;
	if (registry_name_parse(text, &n, &e) != code || !strstr(e.text, want))
		fail_msg("\"%s\": %d \"%s\" instead of %d \"%s\"", text, e.code, e.text, code,
			 want);
	assert_non_null(strstr(e.text, "image name \""));
	assert_string_equal(n.registry, "untouched");
}

static void test_normal(void **state)
{
	static const struct {
		const char *text, *normal;
		bool is_name;
	} cases[] = {
		{ "debian", "docker.io/library/debian:latest", true },
		{ "docker://debian", "docker.io/library/debian:latest", true },
		{ "oci://Quay.IO/x:1", "quay.io/x:1", true },
		{ "docker:a/b", "docker.io/a/b:latest", true },
		{ "/dir/Image", "/dir/Image", false },
		{ "", "", false },
	};
	char out[REGISTRY_TEXT_MAX + 1];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(registry_name_normal(cases[i].text, out), cases[i].is_name);
		assert_string_equal(out, cases[i].normal);
	}
}

/* As long as any name, and one beyond: no spelling of another name. */
static void test_normal_longest(void **state)
{
	char text[REGISTRY_TEXT_MAX + 2], out[REGISTRY_TEXT_MAX + 1];
	(void)state;
	memset(text, '/', sizeof(text));
	text[REGISTRY_TEXT_MAX] = '\0';
	assert_false(registry_name_normal(text, out));
	assert_string_equal(out, text);
	text[REGISTRY_TEXT_MAX] = '/';
	text[REGISTRY_TEXT_MAX + 1] = '\0';
	assert_false(registry_name_normal(text, out));
	assert_string_equal(out, "");
}

static void test_forms(void **state)
{
	(void)state;
	check("debian", "docker.io/library/debian:latest",
	      "docker://docker.io/library/debian:latest");
	check("debian:12", "docker.io/library/debian:12", "docker://docker.io/library/debian:12");
	check("user/app", "docker.io/user/app:latest", "docker://docker.io/user/app:latest");
	check("docker.io/debian", "docker.io/library/debian:latest",
	      "docker://docker.io/library/debian:latest");
	check("index.docker.io/a/b:1", "docker.io/a/b:1", "docker://docker.io/a/b:1");
	check("quay.io/coreos/etcd:v3.5.0-rc.1_x", "quay.io/coreos/etcd:v3.5.0-rc.1_x",
	      "docker://quay.io/coreos/etcd:v3.5.0-rc.1_x");
	check("localhost/x", "localhost/x:latest", "docker://localhost/x:latest");
	check("localhost:5000/x/y/z:Tag", "localhost:5000/x/y/z:Tag",
	      "docker://localhost:5000/x/y/z:Tag");
	check("127.0.0.1:65535/a", "127.0.0.1:65535/a:latest", "docker://127.0.0.1:65535/a:latest");
	check("Quay.IO/x", "quay.io/x:latest", "docker://quay.io/x:latest");
	/* Without a slash, what looks like a host and a port is a name and a tag. */
	check("localhost:5000", "docker.io/library/localhost:5000",
	      "docker://docker.io/library/localhost:5000");
	check("a/b.c_d__e---f", "docker.io/a/b.c_d__e---f:latest",
	      "docker://docker.io/a/b.c_d__e---f:latest");
}

static void test_digests(void **state)
{
	(void)state;
	struct registry_name n;
	struct digest other;
	char op[REGISTRY_OPERAND_MAX + 1];
	check("debian@sha256:" HEX, "docker.io/library/debian@sha256:" HEX,
	      "docker://docker.io/library/debian@sha256:" HEX);
	/* The digest decides, and skopeo does not take both. */
	check("x.io/a:1@sha256:" HEX, "x.io/a:1@sha256:" HEX, "docker://x.io/a@sha256:" HEX);
	digest_of("", 0, &other);
	assert_int_equal(registry_name_parse("x.io/a:1@sha256:" HEX, &n, NULL), 0);
	registry_name_operand(&n, &other, op);
	assert_true(str_starts(op, "docker://x.io/a@sha256:e3b0c442"));
	check_fails("a@sha256:12", -EINVAL, "what follows the @ is not a digest");
	check_fails("a@", -EINVAL, "what follows the @ is not a digest");
	check_fails("a@sha256:" HEX "@sha256:" HEX, -EINVAL, "what follows the @ is not a digest");
	check_fails("a@sha512:" HEX HEX, -EOPNOTSUPP, "not a sha256 one");
}

static void test_hostile(void **state)
{
	(void)state;
	static const char *const repositories[] = {
		"",       "/",          "a/",    "/a",    "a//b",   "-a",     "a-",
		"a..b",   "a___b",      "A/b",   "a b",   "--help", "a\nb",   "a%2fb",
		"a/../b", "\xc3\xa4/b", "a?b",   "..",    "a_.b",   "a/-b/c", "a.io//b",
		"a;b",    "$(a)",       "a,b=c", "x.io/",
	};
	for (size_t i = 0; i < ARRAY_SIZE(repositories); i++)
		check_fails(repositories[i], -EINVAL, "is not a re");
	static const char *const registries[] = {
		"a..b/x",    ".a/x",        "a-.b/x",   "-a.b/x",       "a.b:/x",
		"a.b:0/x",   "a.b:65536/x", "a.b:1x/x", "[::1]:5000/x", "u:p/x",
		"a.b:1:2/x", "a_b.c/x",     "://x",     "a.b\x01/x",
	};
	for (size_t i = 0; i < ARRAY_SIZE(registries); i++)
		check_fails(registries[i], -EINVAL,
			    i == 12 ? "second scheme" : "is not a registry");
	check_fails("https://quay.io/x", -EINVAL, "second scheme");
	check_fails("a:", -EINVAL, "the tag behind");
	check_fails("a:.x", -EINVAL, "the tag behind");
	check_fails("a:-x", -EINVAL, "the tag behind");
	check_fails("a:b c", -EINVAL, "the tag behind");
	check_fails("a:b:c", -EINVAL, "the tag behind");
}

static void test_limits(void **state)
{
	(void)state;
	char text[REGISTRY_TEXT_MAX + 2];
	struct registry_name n;
	/* Registry, slash and repository together. */
	memset(text, 'a', sizeof(text));
	memcpy(text, "x.io/", 5);
	text[REGISTRY_NAME_MAX] = '\0';
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	text[REGISTRY_NAME_MAX] = 'a';
	text[REGISTRY_NAME_MAX + 1] = '\0';
	check_fails(text, -ENAMETOOLONG, "longer than 255 bytes");
	memset(text, 'a', sizeof(text));
	memcpy(text + REGISTRY_NAME_MAX - 1, ".a/x", sizeof(".a/x"));
	check_fails(text, -ENAMETOOLONG, "its registry is longer than 255 bytes");
	/* What is implied counts. */
	memset(text, 'a', sizeof(text));
	text[REGISTRY_NAME_MAX - strlen("docker.io/library/")] = '\0';
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	text[REGISTRY_NAME_MAX - strlen("docker.io/library/")] = 'a';
	text[REGISTRY_NAME_MAX - strlen("docker.io/library/") + 1] = '\0';
	check_fails(text, -ENAMETOOLONG, "longer than 255 bytes");
	memset(text, 't', sizeof(text));
	memcpy(text, "a:", 2);
	text[2 + REGISTRY_TAG_MAX] = '\0';
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	text[2 + REGISTRY_TAG_MAX] = 't';
	text[2 + REGISTRY_TAG_MAX + 1] = '\0';
	check_fails(text, -ENAMETOOLONG, "its tag is longer than 128 bytes");
}

/* The longest name of all, and one byte more. */
static void test_longest(void **state)
{
	(void)state;
	char text[REGISTRY_TEXT_MAX + 2], out[REGISTRY_TEXT_MAX + 1];
	struct registry_name n;
	memset(text, 'a', sizeof(text));
	memcpy(text, "x.io/", 5);
	text[REGISTRY_NAME_MAX] = ':';
	memcpy(text + REGISTRY_NAME_MAX + 1 + REGISTRY_TAG_MAX, "@sha256:" HEX,
	       sizeof("@sha256:" HEX));
	assert_int_equal(strlen(text), REGISTRY_TEXT_MAX);
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	registry_name_text(&n, out);
	assert_string_equal(out, text);
	text[REGISTRY_TEXT_MAX] = '0';
	text[REGISTRY_TEXT_MAX + 1] = '\0';
	check_fails(text, -ENAMETOOLONG, "longer than 456 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_forms),          fixture_test(test_normal),
		fixture_test(test_normal_longest), fixture_test(test_digests),
		fixture_test(test_hostile),        fixture_test(test_limits),
		fixture_test(test_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
