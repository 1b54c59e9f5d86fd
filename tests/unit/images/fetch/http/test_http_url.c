/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http_url.h"

#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void test_show(void **state)
{
	static const struct {
		const char *url, *shown;
	} cases[] = {
		{ "https://example.com/a/b.aci", "https://example.com/a/b.aci" },
		{ "https://me:secret@example.com:8443/a", "https://example.com:8443/a" },
		{ "https://a@b@example.com/c@d", "https://example.com/c@d" },
		{ "https://example.com/a?token=1#x", "https://example.com/a?..." },
		{ "https://example.com?x", "https://example.com?..." },
		{ "https://example.com/a#secret", "https://example.com/a" },
		{ "me:secret@example.com/x", "example.com/x" },
		{ "https:///me:secret@h/x", "https:///h/x" },
		{ "https:/me:secret@h/x", "https:/h/x" },
		{ "https://[::1]:80/", "https://[::1]:80/" },
		{ "", "" },
		{ "https://", "https://" },
		{ "https://h/\377", "https://h/?" },
	};
	char shown[HTTP_SHOWN_MAX + 1], url[HTTP_SHOWN_MAX + 2];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		http_url_show(cases[i].url, shown);
		assert_string_equal(shown, cases[i].shown);
	}
	memset(url, 'x', sizeof(url));
	url[HTTP_SHOWN_MAX - 1] = '\0';
	http_url_show(url, shown);
	assert_string_equal(shown, url);
	url[HTTP_SHOWN_MAX - 1] = 'x';
	url[HTTP_SHOWN_MAX + 1] = '\0';
	http_url_show(url, shown);
	assert_int_equal(strlen(shown), HTTP_SHOWN_MAX);
	assert_string_equal(shown + HTTP_SHOWN_MAX - 4, "x...");
}

static void test_origin(void **state)
{
	struct http_origin o;
	(void)state;
	assert_int_equal(http_url_origin("HTTPS://u:p@Example.COM/x", &o, NULL), 0);
	assert_true(o.tls && o.default_port);
	assert_string_equal(o.host, "example.com");
	assert_string_equal(o.port, "443");
	assert_int_equal(http_url_origin("http://[::1]:8080", &o, NULL), 0);
	assert_true(!o.tls && !o.default_port);
	assert_string_equal(o.host, "[::1]");
	assert_string_equal(o.port, "8080");
	assert_int_equal(http_url_origin("https://example.com:443/", &o, NULL), 0);
	assert_true(o.default_port);
	assert_int_equal(http_url_origin("https://example.com:80/", &o, NULL), 0);
	assert_false(o.default_port);
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"/x",
		"example.com/x",
		"https://",

		"https://h:99999/",
		"https://h:x/",
		"https://a b/",
		"docker://x/y",
		"file:///x",
		"javascript:x",
		"https://h\n/",
	};
	struct http_origin o;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		if (http_url_origin(bad[i], &o, &e) != -EINVAL)
			fail_msg("\"%s\" is accepted", bad[i]);
		assert_true(e.text[0]);
	}
}

static void test_host_limit(void **state)
{
	char url[HTTP_HOST_MAX + 64];
	struct http_origin o;
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(url, 'x', sizeof(url));
		memcpy(url, "http://", 7);
		memcpy(url + 7 + HTTP_HOST_MAX + more, "/x", 3);
		assert_int_equal(http_url_origin(url, &o, NULL), more ? -EINVAL : 0);
	}
}

static void test_region_limit(void **state)
{
	char host[HTTP_HOST_MAX + 1], region[HTTP_REGION_MAX + 1];
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(host, 'r', sizeof(host));
		memcpy(host, "s3.", 3);
		memcpy(host + 3 + HTTP_REGION_MAX + more, ".amazonaws.com", 15);
		http_aws_region(host, region);
		assert_int_equal(strlen(region), more ? strlen("us-east-1") : HTTP_REGION_MAX);
	}
}

static void test_auth(void **state)
{
	struct auth v[] = {
		{ .host = (char[]){ "example.com" } },
		{ .host = (char[]){ "example.com:8080" } },
		{ .host = (char[]){ "Other.example.com:443" } },
	};
	const struct auths list = { .v = v, .n = ARRAY_SIZE(v) };
	static const struct {
		const char *url;
		int which;
	} cases[] = {
		{ "https://example.com/", 0 },       { "http://EXAMPLE.com/", 0 },
		{ "https://example.com:443/", 0 },   { "https://example.com:8080/", 1 },
		{ "https://example.com:80/", -1 },   { "https://other.example.com/", 2 },
		{ "http://other.example.com/", -1 }, { "https://www.example.com/", -1 },
		{ "https://example.co/", -1 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_origin o;
		assert_int_equal(http_url_origin(cases[i].url, &o, NULL), 0);
		const struct auth *a = http_origin_auth(&list, &o);
		assert_ptr_equal(a, cases[i].which < 0 ? NULL : &v[cases[i].which]);
		assert_null(http_origin_auth(NULL, &o));
	}
}

static void test_equal(void **state)
{
	struct http_origin a, b;
	(void)state;
	assert_int_equal(http_url_origin("https://h/x", &a, NULL), 0);
	assert_int_equal(http_url_origin("https://H:443/y", &b, NULL), 0);
	assert_true(http_origin_equal(&a, &b));
	assert_int_equal(http_url_origin("http://h:443/y", &b, NULL), 0);
	assert_false(http_origin_equal(&a, &b));
	assert_int_equal(http_url_origin("https://h:444/y", &b, NULL), 0);
	assert_false(http_origin_equal(&a, &b));
	assert_int_equal(http_url_origin("https://g/y", &b, NULL), 0);
	assert_false(http_origin_equal(&a, &b));
}

static void test_follow(void **state)
{
	static const struct {
		const char *location, *url;
	} good[] = {
		{ "https://other/x?y#z", "https://other/x?y" },
		{ "/x", "https://h:8443/x" },
		{ "c", "https://h:8443/a/c" },
		{ "../c", "https://h:8443/c" },
		{ "?q", "https://h:8443/a/b?q" },
		{ "//other/x", "https://other/x" },
		{ "http://u:p@other/x", "http://other/x" },
		{ "/with blank", "https://h:8443/with%20blank" },
	};
	static const char *const bad[] = { "file:///x", "ftp://h/", "https://h:x/", "http://" };
	static char url[HTTP_URL_MAX + 1], location[HTTP_URL_MAX + 2];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(http_url_follow("https://me:pw@h:8443/a/b?c#d", good[i].location,
						 url, NULL),
				 0);
		assert_string_equal(url, good[i].url);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(http_url_follow("https://h/a", bad[i], url, &e), -EPROTO);
		assert_true(e.text[0]);
	}
	memset(location, 'x', sizeof(location) - 1);
	location[0] = '/';
	location[HTTP_URL_MAX - strlen("https://h")] = '\0';
	assert_int_equal(http_url_follow("https://h/a", location, url, NULL), 0);
	assert_int_equal(strlen(url), HTTP_URL_MAX);
	location[strlen(location)] = 'x';
	assert_int_equal(http_url_follow("https://h/a", location, url, NULL), -EPROTO);
}

static void test_aws_region(void **state)
{
	static const struct {
		const char *host, *region;
	} cases[] = {
		{ "s3.amazonaws.com", "us-east-1" },
		{ "bucket.s3.amazonaws.com", "us-east-1" },
		{ "s3-external-1.amazonaws.com", "us-east-1" },
		{ "s3-eu-west-1.amazonaws.com", "eu-west-1" },
		{ "b.u.cket.s3-eu-west-1.amazonaws.com", "eu-west-1" },
		{ "bucket.s3.eu-central-1.amazonaws.com", "eu-central-1" },
		{ "s3.eu-central-1.amazonaws.com", "eu-central-1" },
		{ "ec2.eu-central-1.amazonaws.com", "us-east-1" },
		{ "s3-.amazonaws.com", "us-east-1" },
		{ "s3-a:b.amazonaws.com", "us-east-1" },
		{ "amazonaws.com", "us-east-1" },
		{ "minio.example.com", "us-east-1" },
		{ "", "us-east-1" },
	};
	char region[HTTP_REGION_MAX + 1];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		http_aws_region(cases[i].host, region);
		assert_string_equal(region, cases[i].region);
	}
}

static int use_urls(void *ctx)
{
	struct http_origin o;
	char url[HTTP_URL_MAX + 1];
	(void)ctx;
	int r = http_url_origin("https://h/a", &o, NULL);
	return r < 0 ? r : http_url_follow("https://h/a", "../b", url, NULL);
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(use_urls, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_show),         fixture_test(test_origin),
		fixture_test(test_bad),          fixture_test(test_host_limit),
		fixture_test(test_region_limit), fixture_test(test_auth),
		fixture_test(test_equal),        fixture_test(test_follow),
		fixture_test(test_aws_region),   fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
