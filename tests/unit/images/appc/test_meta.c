/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/meta.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

/* All tags of @html as "name=content|". */
static const char *scan(const char *html)
{
	static char all[1024];
	struct meta_scan s = { html, html + strlen(html) };
	struct meta_tag tag;
	size_t n = 0;
	all[0] = '\0';
	while (meta_next(&s, &tag)) {
		assert_true(s.at <= s.end);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s=%s|", tag.name, tag.content);
		assert_true(n < sizeof(all));
	}
	return all;
}

static void test_tags(void **state)
{
	static const struct {
		const char *html, *tags;
	} cases[] = {
		{ "<meta name=\"a\" content=\"b c\">", "a=b c|" },
		{ "<META CONTENT='b' NAME='A'>", "a=b|" },
		{ "<meta name=a content=b/c>", "a=b/c|" },
		{ "<meta name=a content=b />", "a=b|" },
		{ "<meta\n\tname = a\n content\n=\n\"b\"\n>", "a=b|" },
		{ "<meta charset=utf-8><meta name=a content=b><meta name=c content=d>",
		  "a=b|c=d|" },
		{ "<!DOCTYPE html><html><head><title>x</title><meta name=a content=b></head>",
		  "a=b|" },
		{ "<meta name=a>", "" },
		{ "<meta content=a>", "" },
		{ "<meta name content>", "=|" },
		{ "<meta name=\"\" content=\"\">", "=|" },
		{ "<metal name=a content=b>", "" },
		{ "<met name=a content=b>", "" },
		{ "</meta name=a content=b>", "" },
		{ "< meta name=a content=b>", "" },
		{ "<<meta name=a content=b>", "a=b|" },
		{ "<1<meta name=a content=b>", "a=b|" },
		/* The first one counts. */
		{ "<meta name=a name=x content=b content=y>", "a=b|" },
		{ "<meta id=x name=a class='>' content=b>", "a=b|" },
		{ "<meta = name=a / content=b>", "a=b|" },
		{ "<meta =name=x name=a content=b>", "a=b|" },
		{ "<meta name=\"a\"content=\"b\">", "a=b|" },
		/* Ends too early. */
		{ "<meta name=a content=b", "" },
		{ "<meta name=a content=\"b>", "" },
		{ "<meta name=a content=", "" },
		{ "<meta", "" },
		{ "<", "" },
		{ "", "" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (strcmp(scan(cases[i].html), cases[i].tags) != 0)
			fail_msg("%s: %s", cases[i].html, scan(cases[i].html));
}

static void test_not_tags(void **state)
{
	static const struct {
		const char *html, *tags;
	} cases[] = {
		{ "<!-- <meta name=a content=b> --><meta name=c content=d>", "c=d|" },
		{ "<!-- > <meta name=a content=b> --", "" },
		{ "<!--><meta name=a content=b>", "a=b|" },
		{ "<!---><meta name=a content=b>-->", "a=b|" },
		{ "<!----><meta name=a content=b>", "a=b|" },
		{ "<?xml <meta name=a content=b> ?><meta name=c content=d>", "c=d|" },
		{ "<script>\"<meta name=a content=b>\"</script><meta name=c content=d>", "c=d|" },
		{ "<SCRIPT x='>'>'<meta name=a content=b>'</Script ><meta name=c content=d>",
		  "c=d|" },
		{ "<style><meta name=a content=b></style><title><meta name=a content=b></title>",
		  "" },
		{ "<textarea><meta name=a content=b>", "" },
		{ "<plaintext><meta name=a content=b></plaintext><meta name=a content=b>", "" },
		{ "<p title=\"<meta name=a content=b>\"><meta name=c content=d>", "c=d|" },
		{ "</p title=\"<meta name=a content=b>\"><meta name=c content=d>", "c=d|" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (strcmp(scan(cases[i].html), cases[i].tags) != 0)
			fail_msg("%s: %s", cases[i].html, scan(cases[i].html));
}

static void test_references(void **state)
{
	(void)state;
	assert_string_equal(scan("<meta name=a content=\"&amp;&lt;&gt;&quot;&apos;\">"),
			    "a=&<>\"'|");
	assert_string_equal(scan("<meta name=a content=\"&#65;&#x42;&#X0043;&#0068;\">"),
			    "a=ABCD|");
	assert_string_equal(scan("<meta name=a content=\"&amp;amp;\">"), "a=&amp;|");
	assert_string_equal(scan("<meta name=a content=\"x?a=1&b=2&copy;&AMP;&\">"),
			    "a=x?a=1&b=2&copy;&AMP;&|");
	assert_string_equal(scan("<meta name=a content=\"&#;&#x;&#0;&#128;&#xg;&#99999999;\">"),
			    "a=&#;&#x;&#0;&#128;&#xg;&#99999999;|");
	assert_string_equal(scan("<meta name='&#97;' content=&#98;>"), "a=b|");
}

static void test_limits(void **state)
{
	static char html[META_CONTENT_MAX + 128];
	(void)state;
	const size_t max[] = { META_NAME_MAX, META_CONTENT_MAX };
	for (size_t which = 0; which < 2; which++)
		for (size_t more = 0; more < 2; more++) {
			struct meta_tag tag;
			snprintf(html, sizeof(html), "<meta %s=%0*d %s=x>",
				 which ? "content" : "name", (int)(max[which] + more), 0,
				 which ? "name" : "content");
			struct meta_scan s = { html, html + strlen(html) };
			assert_int_equal(meta_next(&s, &tag), !more);
			assert_true(more || strlen(which ? tag.content : tag.name) == max[which]);
		}
}

static void test_nul(void **state)
{
	static const char html[] = "<meta name=a content=b\0c><meta name=d content=e>\0";
	struct meta_scan s = { html, html + sizeof(html) - 1 };
	struct meta_tag tag;
	(void)state;
	assert_true(meta_next(&s, &tag));
	assert_string_equal(tag.name, "d");
	assert_false(meta_next(&s, &tag));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_tags),       fixture_test(test_not_tags),
		fixture_test(test_references), fixture_test(test_limits),
		fixture_test(test_nul),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
