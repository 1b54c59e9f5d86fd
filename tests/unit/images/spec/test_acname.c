/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/acname.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void assert_format(const struct acname *n, const char *text)
{
	cleanup_buf struct buf out;
	buf_init(&out, 16 * 1024);
	assert_int_equal(acname_format(n, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), text);
}

static void test_identifier(void **state)
{
	static const char *const good[] = { "a",           "0",      "example.com/app",
					    "a-b.c_d~e/f", "a0-1/2", "shorthash--0",
					    "a~_-b" };
	static const char *const bad[] = { "",     "A",    "-a",  "a--",  "a-.b",     "a/../b",
					   "a..b", "a-/b", "a/",  "/a",   "a//b",     "a b",
					   "a:b",  "a,b",  "a=b", "a\nb", "\303\244", "a./b" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(acname_is_identifier(good[i], 15));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(acname_is_identifier(bad[i], 15));
	assert_true(acname_is_identifier("abc", 3));
	assert_false(acname_is_identifier("abcd", 3));
}

static void test_forms(void **state)
{
	struct acname n;
	(void)state;
	assert_int_equal(acname_parse("example.com/app", &n, NULL), 0);
	assert_string_equal(n.name, "example.com/app");
	assert_int_equal(n.n, 0);
	assert_format(&n, "example.com/app");
	assert_int_equal(acname_parse("example.com/app:1.0.0", &n, NULL), 0);
	assert_string_equal(acname_get(&n, "version"), "1.0.0");
	assert_format(&n, "example.com/app:1.0.0");
	assert_int_equal(acname_parse("example.com/app,channel=alpha,version=2+x", &n, NULL), 0);
	assert_string_equal(acname_get(&n, "channel"), "alpha");
	assert_format(&n, "example.com/app:2+x,channel=alpha");
	assert_int_equal(acname_parse("app:1,os=linux,a=b=c", &n, NULL), 0);
	assert_string_equal(acname_get(&n, "os"), "linux");
	assert_string_equal(acname_get(&n, "a"), "b=c");
	assert_null(acname_get(&n, "arch"));
	assert_format(&n, "app:1,os=linux,a=b=c");
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "", "image name \"\": \"\" is not a name (lower-case letters, digits, and -._~/ "
		      "between them: example.com/app)" },
		{ "Example.com/app", "\"Example.com/app\" is not a name" },
		{ "a b", "\"a b\" is not a name" },
		{ ":1", "\"\" is not a name" },
		{ "a:", "label \"version\" has no usable value" },
		{ "a:1:2", "label \"version\" has no usable value" },
		{ "a:1,version=2",
		  "image name \"a:1,version=2\": label \"version\" is given twice" },
		{ "a,b=1,b=1", "label \"b\" is given twice" },
		{ "a,b", "label \"b\" has no value (write b=VALUE)" },
		{ "a,", "label \"\" has no value (write NAME=VALUE)" },
		{ "a,b=", "label \"b\" has no usable value" },
		{ "a,=b", "\"\" is not a name of a label" },
		{ "a,B=c", "\"B\" is not a name of a label" },
		{ "a,name=c", "\"name\" is not a name of a label" },
		{ "a,b=c d", "label \"b\" has no usable value" },
		{ "a,b=c:d", "label \"b\" has no usable value" },
		{ "a,b=\303\244", "label \"b\" has no usable value" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct acname n;
		struct err e = ERR_INIT;
		assert_int_equal(acname_parse(bad[i].text, &n, &e), -EINVAL);
		if (!strstr(e.text, bad[i].error))
			fail_msg("\"%s\": %s", bad[i].text, e.text);
	}
}

static void test_lengths(void **state)
{
	char text[1024];
	struct acname n;
	(void)state;
	memset(text, 'x', sizeof(text));
	text[ACNAME_MAX] = '\0';
	assert_int_equal(acname_parse(text, &n, NULL), 0);
	text[ACNAME_MAX] = 'x';
	text[ACNAME_MAX + 1] = '\0';
	assert_int_equal(acname_parse(text, &n, NULL), -EINVAL);
	memset(text, 'x', sizeof(text));
	memcpy(text, "a:", 2);
	text[2 + ACNAME_VALUE_MAX] = '\0';
	assert_int_equal(acname_parse(text, &n, NULL), 0);
	text[2 + ACNAME_VALUE_MAX] = 'x';
	text[2 + ACNAME_VALUE_MAX + 1] = '\0';
	assert_int_equal(acname_parse(text, &n, NULL), -EINVAL);
	for (size_t more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), "a,%0*d=%0*d", (int)ACNAME_LABEL_MAX, 0,
			 (int)(ACNAME_VALUE_MAX + more), 0);
		assert_int_equal(acname_parse(text, &n, NULL), more ? -EINVAL : 0);
		snprintf(text, sizeof(text), "a,%0*d=1", (int)(ACNAME_LABEL_MAX + more), 0);
		assert_int_equal(acname_parse(text, &n, NULL), more ? -EINVAL : 0);
	}
}

static void test_labels_limit(void **state)
{
	struct acname n;
	struct err e = ERR_INIT;
	char label[16];
	(void)state;
	assert_int_equal(acname_parse("a", &n, NULL), 0);
	for (size_t i = 0; i < ACNAME_LABELS_MAX; i++) {
		snprintf(label, sizeof(label), "l%zu", i);
		assert_int_equal(acname_set(&n, label, "1", NULL), 0);
	}
	assert_int_equal(acname_set(&n, "l3", "2", NULL), 0);
	assert_string_equal(acname_get(&n, "l3"), "2");
	assert_int_equal(acname_set(&n, "more", "1", &e), -E2BIG);
	assert_string_equal(e.text, "more than 16 labels");
	assert_int_equal(acname_parse("a:1,a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,"
				      "o=1",
				      &n, NULL),
			 0);
	assert_int_equal(acname_parse("a:1,a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,"
				      "o=1,p=1",
				      &n, NULL),
			 -EINVAL);
}

static int parse_and_format(void *ctx)
{
	struct acname n;
	cleanup_buf struct buf out;
	(void)ctx;
	buf_init(&out, 64);
	int r = acname_parse("example.com/app:1,os=linux", &n, NULL);
	return r < 0 ? r : acname_format(&n, &out);
}

static void test_host(void **state)
{
	static const char *const with[] = { "example.com/a", "a.b", "localhost/a",
					    "x.y/z:1,os=linux" };
	static const char *const without[] = { "a", "a/b.c", "localhost", "localhosts/a",
					       "",  "A.b/c" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(with); i++)
		assert_true(acname_has_host(with[i]));
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		assert_false(acname_has_host(without[i]));
}

static void test_missing(void **state)
{
	struct acname have, want;
	const struct acname_label *l;
	(void)state;
	assert_int_equal(acname_parse("a.b/c:1,os=linux", &have, NULL), 0);
	static const char *const fit[] = { "a.b/c", "a.b/c:1", "a.b/c,os=linux" };
	for (size_t i = 0; i < ARRAY_SIZE(fit); i++) {
		assert_int_equal(acname_parse(fit[i], &want, NULL), 0);
		assert_null(acname_missing(&have, &want));
	}
	assert_int_equal(acname_parse("a.b/c:2,os=linux", &want, NULL), 0);
	l = acname_missing(&have, &want);
	assert_string_equal(l ? l->name : "", "version");
	assert_int_equal(acname_parse("a.b/c:latest,arch=amd64,os=latest", &want, NULL), 0);
	l = acname_missing(&have, &want);
	assert_string_equal(l ? l->name : "", "version");
	/* No version at all is the latest one, too. */
	assert_int_equal(acname_parse("a.b/c:latest,os=linux", &want, NULL), 0);
	assert_int_equal(acname_parse("a.b/c,os=linux", &have, NULL), 0);
	assert_null(acname_missing(&have, &want));
	assert_int_equal(acname_parse("a.b/c:latest,os=linux", &have, NULL), 0);
	assert_null(acname_missing(&have, &want));
}

static void test_format_fails(void **state)
{
	struct acname n;
	cleanup_buf struct buf out;
	(void)state;
	assert_int_equal(acname_parse("ab:1,c=2", &n, NULL), 0);
	buf_init(&out, 8);
	assert_int_equal(acname_format(&n, &out), 0);
	buf_deinit(&out);
	buf_init(&out, 7);
	assert_int_equal(acname_format(&n, &out), -EMSGSIZE);
	for_each_failing_alloc(parse_and_format, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_identifier),   fixture_test(test_forms),
		fixture_test(test_bad),          fixture_test(test_lengths),
		fixture_test(test_labels_limit), cmocka_unit_test(test_host),
		fixture_test(test_missing),      fixture_test(test_format_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
