/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/reference.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static bool exists(const char *path)
{
	static const char *const there[] = { "dir", "a.tar",     "/x:y/b.tar",   "odd:name",
					     "odd", "sha256-00", "sha256-00.tar" };
	for (size_t i = 0; i < ARRAY_SIZE(there); i++)
		if (strcmp(path, there[i]) == 0)
			return true;
	return strlen(path) == PATH_MAX - 1;
}

static void check(const char *text, enum reference_type type, const char *path, const char *name)
{
	struct reference ref;
	struct err e = ERR_INIT;
	if (reference_parse(text, exists, &ref, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(ref.type, type);
	assert_string_equal(ref.path, path);
	assert_string_equal(ref.name, name);
}

static void check_fails(const char *text, int code, const char *want)
{
	struct reference ref;
	struct err e = ERR_INIT;
	assert_int_equal(reference_parse(text, exists, &ref, &e), code);
	assert_non_null(strstr(e.text, want));
}

static void test_forms(void **state)
{
	(void)state;
	check("dir", REFERENCE_ANY, "dir", "");
	check("dir:\xe6\x97\xa5:1", REFERENCE_ANY, "dir", "\xe6\x97\xa5:1");
	check("dir:tag", REFERENCE_ANY, "dir", "tag");
	check("a.tar:docker.io/library/debian:12", REFERENCE_ANY, "a.tar",
	      "docker.io/library/debian:12");
	check("oci:dir", REFERENCE_OCI_DIR, "dir", "");
	check("oci:dir:v1", REFERENCE_OCI_DIR, "dir", "v1");
	check("oci-archive:a.tar:v1", REFERENCE_OCI_ARCHIVE, "a.tar", "v1");
	check("docker-archive:a.tar:x/y:1", REFERENCE_DOCKER_ARCHIVE, "a.tar", "x/y:1");
	check("file:a.tar", REFERENCE_ANY, "a.tar", "");
	check("file:///x:y/b.tar:t", REFERENCE_ANY, "/x:y/b.tar", "t");
	check("rootfs:dir", REFERENCE_ROOTFS, "dir", "");
	check("dir:@sha256:00", REFERENCE_ANY, "dir", "sha256:00");
	/* Colons in the path: the whole text, else the shortest prefix that exists. */
	check("odd:name", REFERENCE_ANY, "odd:name", "");
	check("odd:other", REFERENCE_ANY, "odd", "other");
	check("odd:name:tag", REFERENCE_ANY, "odd", "name:tag");
	check("/x:y/b.tar", REFERENCE_ANY, "/x:y/b.tar", "");
	check("/x:y/b.tar:t", REFERENCE_ANY, "/x:y/b.tar", "t");
}

/* What is not a path keeps its text. */
static void test_others(void **state)
{
	static const struct {
		const char *text, *rest;
		enum reference_type type;
	} cases[] = {
		{ "docker://debian:12", "debian:12", REFERENCE_REGISTRY },
		{ "docker:debian", "debian", REFERENCE_REGISTRY },
		{ "oci://h:5000/x@sha256:00", "h:5000/x@sha256:00", REFERENCE_REGISTRY },
		{ "https://h/x.aci", "https://h/x.aci", REFERENCE_URL },
		{ "http://h/x", "http://h/x", REFERENCE_URL },
		{ "sha256-ab", "sha256-ab", REFERENCE_ID },
		{ "sha512-ab", "sha512-ab", REFERENCE_ID },
		{ "sha256-00", "sha256-00", REFERENCE_ID },
		{ "sha256-", "sha256-", REFERENCE_ID },
		{ "nope", "nope", REFERENCE_NAME },
		{ "nope:tag", "nope:tag", REFERENCE_NAME },
		{ ":tag", ":tag", REFERENCE_NAME },
		{ "example.com/a:1,os=linux", "example.com/a:1,os=linux", REFERENCE_NAME },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reference ref;
		struct err e = ERR_INIT;
		if (reference_parse(cases[i].text, exists, &ref, &e) < 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(ref.type, cases[i].type);
		assert_string_equal(ref.text, cases[i].rest);
		assert_string_equal(ref.path, "");
		assert_string_equal(ref.name, "");
		assert_int_equal(e.code, 0);
	}
}

static void test_failures(void **state)
{
	(void)state;
	check_fails("", -EINVAL, "empty path");
	check_fails("oci:", -EINVAL, "empty path");
	check_fails("/nope", -ENOENT, "no such file or directory (give");
	check_fails("./nope:tag", -ENOENT, "no such file");
	check_fails("nope.aci", -ENOENT, "no such file");
	check_fails("oci:nope", -ENOENT, "no such file");
	check_fails("rootfs:nope", -ENOENT, "no such file");
	check_fails("oci::tag", -EINVAL, "empty path");
	check_fails("dir:", -EINVAL, "the name behind the path is empty");
	check_fails("dir:a\nb", -EINVAL, "not printable");
	check_fails("dir:a\xe4", -EINVAL, "not printable UTF-8");
	check_fails("dir:a\xe2\x80\xae", -EINVAL, "not printable");
	check_fails("docker-daemon:debian", -EINVAL, "skopeo copy");
}

static void test_limits(void **state)
{
	(void)state;
	char text[PATH_MAX + 2];
	memset(text, 'p', sizeof(text));
	text[0] = '/';
	text[PATH_MAX - 1] = '\0';
	check(text, REFERENCE_ANY, text, "");
	text[PATH_MAX - 1] = 'p';
	text[PATH_MAX] = '\0';
	check_fails(text, -ENAMETOOLONG, "path longer than");
	memset(text, 'n', sizeof(text));
	memcpy(text, "dir:", 4);
	text[4 + IMAGE_NAME_MAX] = '\0';
	check(text, REFERENCE_ANY, "dir", text + 4);
	text[4 + IMAGE_NAME_MAX] = 'n';
	text[4 + IMAGE_NAME_MAX + 1] = '\0';
	check_fails(text, -EINVAL, "longer than 255 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_forms),
		fixture_test(test_others),
		fixture_test(test_failures),
		fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
