/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/discovery.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/fetch/server.h"

static struct server server;

static void parse_name(struct acname *n, const char *text)
{
	assert_int_equal(acname_parse(text, n, NULL), 0);
}

static void test_render(void **state)
{
	static const struct {
		const char *template, *url;
	} cases[] = {
		{ "https://h/{os}/{arch}/{name}-{version}.{ext}",
		  "https://h/linux/amd64/example.com/app-1.0+x.aci" },
		{ "{name}{name}", "example.com/appexample.com/app" },
		{ "{odd}", "a%25b%3Fc%23d%26e%22f" },
		{ "x}y", "x}y" },
		{ "", "" },
	};
	static const char *const bad[] = { "{none}", "{", "{name", "{}", "{{name}}", "{ name }" };
	static char url[HTTP_URL_MAX + 1], template[HTTP_URL_MAX + 2];
	struct acname n;
	(void)state;
	parse_name(&n, "example.com/app:1.0+x,os=linux,arch=amd64,odd=a%b?c#d&e\"f");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(discovery_render(cases[i].template, &n, "aci", url), 0);
		assert_string_equal(url, cases[i].url);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(discovery_render(bad[i], &n, "aci", url), -ENOENT);
	memset(template, 'x', sizeof(template) - 1);
	memcpy(template, "{ext}", 5);
	template[HTTP_URL_MAX + 1] = '\0';
	assert_int_equal(discovery_render(template, &n, "12345", url), -ENAMETOOLONG);
	assert_int_equal(discovery_render(template, &n, "1234", url), 0);
	assert_int_equal(strlen(url), HTTP_URL_MAX);
}

/* What @html says about the name, as one text. */
static const char *read_html(const char *html, const char *name, bool insecure_http)
{
	static char text[4096];
	size_t used = 0;
	struct acname n;
	CLEANUP(discovery_deinit) struct discovery d;
	discovery_init(&d);
	parse_name(&n, name);
	assert_int_equal(discovery_parse(html, strlen(html), &n, insecure_http, &d), 0);
	assert_int_equal(d.images.n, d.signatures.n);
	text[0] = '\0';
	for (size_t i = 0; i < d.images.n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s\n", d.images.v[i],
					 d.signatures.v[i]);
	for (size_t i = 0; i < d.keys.n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", d.keys.v[i]);
	return text;
}

static void test_parse(void **state)
{
	static const char html[] =
		"<html><head>"
		"<meta name=\"ac-discovery\" content=\"example.com https://h/{name}-{version}.{ext}\">"
		"<meta name=\"ac-discovery\" content=\"example.com/other https://no/{name}.{ext}\">"
		"<meta name=\"ac-discovery\" content=\"example.com https://no/{name}-{color}.{ext}\">"
		"<meta name=\"ac-discovery\" content=\"example.com https://no/{name}.aci\">"
		"<meta name=\"ac-discovery\" content=\"example.com hdfs://no/{name}.{ext}\">"
		"<meta name=\"ac-discovery\" content=\"example.com\">"
		"<meta name=\"ac-discovery\" content=\"\">"
		"<meta name=\"ac-discovery\" content=\" \t example.com  http://plain/{name}.{ext}\n\">"
		"<meta name=\"AC-Discovery-Pubkeys\" content=\"example.com https://h/k.gpg\">"
		"<meta name=\"ac-discovery-pubkeys\" content=\"example.com http://plain/k.gpg\">"
		"<meta name=\"ac-discovery-pubkeys\" content=\"example.org https://no/k.gpg\">"
		"<meta name=\"ac-discovery-more\" content=\"example.com https://no/{name}.{ext}\">"
		"</head>";
	(void)state;
	assert_string_equal(read_html(html, "example.com/app:1", false),
			    "https://h/example.com/app-1.aci https://h/example.com/app-1.aci.asc\n"
			    "https://h/k.gpg\n");
	assert_string_equal(
		read_html(html, "example.com/app:1", true),
		"https://h/example.com/app-1.aci https://h/example.com/app-1.aci.asc\n"
		"http://plain/example.com/app.aci http://plain/example.com/app.aci.asc\n"
		"https://h/k.gpg\n"
		"http://plain/k.gpg\n");
	assert_string_equal(read_html(html, "example.net/app:1", true), "");
	assert_string_equal(read_html("no html", "example.com/app:1", true), "");
}

static void test_limit(void **state)
{
	static char html[8192];
	struct acname n;
	(void)state;
	parse_name(&n, "a");
	for (size_t more = 0; more < 2; more++) {
		CLEANUP(discovery_deinit) struct discovery d;
		size_t used = 0;
		discovery_init(&d);
		for (size_t i = 0; i < DISCOVERY_URLS_MAX + more; i++)
			used += (size_t)snprintf(
				html + used, sizeof(html) - used,
				"<meta name=ac-discovery content=\"a https://h/%zu.{ext}\">"
				"<meta name=ac-discovery-pubkeys content=\"a https://h/%zu\">",
				i, i);
		assert_int_equal(discovery_parse(html, used, &n, false, &d), 0);
		assert_int_equal(d.images.n, DISCOVERY_URLS_MAX);
		assert_int_equal(d.signatures.n, DISCOVERY_URLS_MAX);
		assert_int_equal(d.keys.n, DISCOVERY_URLS_MAX);
		assert_string_equal(d.keys.v[DISCOVERY_URLS_MAX - 1], "https://h/15");
	}
}

/* A search and what came of it. */
struct find {
	struct discovery d;
	struct fetch_options o;
	struct err e;
	char notes[8192];
};

static void hear_note(void *ctx, const char *text)
{
	struct find *f = ctx;
	size_t n = strlen(f->notes);
	snprintf(f->notes + n, sizeof(f->notes) - n, "%s\n", text);
}

static void hear_progress(void *ctx, const struct fetch_progress *p)
{
	(void)ctx;
	fail_msg("progress of %s", p->what);
}

static void find_init(struct find *f)
{
	memset(f, 0, sizeof(*f));
	f->o = (struct fetch_options){ .note = hear_note, .progress = hear_progress, .ctx = f };
	discovery_init(&f->d);
}

static void find_deinit(struct find *f)
{
	discovery_deinit(&f->d);
}

static int find(struct find *f, const char *name, enum discovery_wanted wanted)
{
	struct acname n;
	parse_name(&n, name);
	f->e = ERR_INIT;
	f->notes[0] = '\0';
	discovery_deinit(&f->d);
	int r = discovery_find(&n, wanted, &f->o, &f->d, &f->e);
	assert_int_equal(f->e.code, r);
	return r;
}

static void test_walk(void **state)
{
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	server_page(&server, "example.com", "team/app",
		    "<meta name=ac-discovery content=\"example.com https://h/{name}-{version}-{os}-"
		    "{arch}.{ext}\">");
	server_page(&server, "example.com", "",
		    "<meta name=ac-discovery content=\"example.com https://root/{name}.{ext}\">"
		    "<meta name=ac-discovery-pubkeys content=\"example.com https://root/k.gpg\">");
	assert_int_equal(find(&f, "example.com/team/app", DISCOVERY_IMAGES), 0);
	assert_int_equal(f.d.images.n, 1);
	char want[128];
	snprintf(want, sizeof(want), "https://h/example.com/team/app-latest-linux-%s.aci",
		 acname_host_arch);
	assert_string_equal(f.d.images.v[0], want);
	assert_int_equal(f.d.keys.n, 0);
	assert_int_equal(find(&f, "example.com/team/app:2,os=plan9,arch=x", DISCOVERY_IMAGES), 0);
	assert_string_equal(f.d.images.v[0], "https://h/example.com/team/app-2-plan9-x.aci");
	/* Keys are on the host's page only. */
	assert_int_equal(find(&f, "example.com/team/app", DISCOVERY_KEYS), 0);
	assert_string_equal(f.d.keys.v[0], "https://root/k.gpg");
	assert_int_equal(find(&f, "example.com/team/tool", DISCOVERY_IMAGES), 0);
	assert_string_equal(f.d.images.v[0], "https://root/example.com/team/tool.aci");
	assert_non_null(strstr(f.notes, "example.com/team/tool?...\": bad HTTP status code: 404"));
	assert_non_null(strstr(f.notes, "example.com/team?...\": bad HTTP status code: 404"));
}

static void test_redirect(void **state)
{
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	server_page(&server, "www.example.com", "", "REDIRECT https://example.com/page");
	server_page(&server, "example.com", "page",
		    "<meta name=ac-discovery content=\"www.example.com https://h/{name}.{ext}\">");
	assert_int_equal(find(&f, "www.example.com", DISCOVERY_IMAGES), 0);
	assert_string_equal(f.d.images.v[0], "https://h/www.example.com.aci");
}

static void test_failures(void **state)
{
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	server_page(&server, "empty.example.com", "a", "<html>");
	assert_true(find(&f, "empty.example.com/a", DISCOVERY_IMAGES) < 0);
	assert_string_equal(
		f.e.text,
		"discovery failed for \"empty.example.com/a\": "
		"\"https://empty.example.com/a?ac-discovery=1\": no meta tag "
		"\"ac-discovery\" there that fits \"empty.example.com/a\" with its labels");
	assert_true(find(&f, "empty.example.com/b", DISCOVERY_IMAGES) < 0);
	assert_string_equal(f.e.text,
			    "discovery failed for \"empty.example.com/b\": "
			    "\"https://empty.example.com/b?...\": bad HTTP status code: 404 "
			    "(not found on the server)");
	assert_non_null(strstr(f.notes, "https://empty.example.com?..."));
	/* A certificate of another host. */
	server_page(&server, "example.org", "", "<html>");
	assert_true(find(&f, "example.org", DISCOVERY_IMAGES) < 0);
	assert_non_null(strstr(f.e.text, "discovery failed for \"example.org\": \"https://"));
	assert_non_null(strstr(f.e.text, "TLS: "));
	/* No room for the labels of this machine. */
	assert_true(find(&f, "a:1,a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1",
			 DISCOVERY_IMAGES) < 0);
	assert_string_equal(f.e.text, "discovery failed for \"a\": more than 16 labels");
}

static void test_without_tls(void **state)
{
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	/* No certificate for it. */
	server_page(&server, "plain.example.org", "",
		    "<meta name=ac-discovery content=\"plain.example.org http://h/{name}.{ext}\">");
	assert_true(find(&f, "plain.example.org", DISCOVERY_IMAGES) < 0);
	assert_int_equal(server_count(&server, "GET | http://plain.example.org", ""), 0);
	f.o.insecure_http = true;
	assert_int_equal(find(&f, "plain.example.org", DISCOVERY_IMAGES), 0);
	assert_string_equal(f.d.images.v[0], "http://h/plain.example.org.aci");
	assert_true(find(&f, "plain.example.org/x", DISCOVERY_KEYS) < 0);
	assert_non_null(strstr(f.e.text, "\"https://plain.example.org/x?...\": TLS"));
	assert_non_null(strstr(f.e.text,
			       "; \"http://plain.example.org/x?...\": bad HTTP status code: 404"));
}

/* Tags behind the part that is looked at are not there. */
static void test_large_page(void **state)
{
	static const char tag[] =
		"<meta name=ac-discovery content=\"large.example.com https://h/{name}.{ext}\">";
	static char html[DISCOVERY_PAGE_MAX + 200];
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	memset(html, ' ', sizeof(html) - 1);
	memcpy(html + DISCOVERY_PAGE_MAX - strlen(tag), tag, strlen(tag));
	server_page(&server, "large.example.com", "", html);
	assert_int_equal(find(&f, "large.example.com", DISCOVERY_IMAGES), 0);
	memmove(html + DISCOVERY_PAGE_MAX - strlen(tag) + 1,
		html + DISCOVERY_PAGE_MAX - strlen(tag), strlen(tag));
	server_page(&server, "large.example.com", "", html);
	assert_true(find(&f, "large.example.com", DISCOVERY_IMAGES) < 0);
}

static void test_steps_limit(void **state)
{
	(void)state;
	CLEANUP(find_deinit) struct find f;
	find_init(&f);
	assert_true(find(&f, "deep.example.com/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
			 DISCOVERY_IMAGES) < 0);
	assert_int_equal(server_count(&server, "CONNECT | deep.example.com", ""),
			 DISCOVERY_STEPS_MAX);
}

static int parse_without_memory(void *ctx)
{
	static const char html[] = "<meta name=ac-discovery content=\"a https://h/{name}.{ext}\">"
				   "<meta name=ac-discovery-pubkeys content=\"a https://h/k\">";
	CLEANUP(discovery_deinit) struct discovery d;
	discovery_init(&d);
	return discovery_parse(html, strlen(html), ctx, false, &d);
}

static void test_memory_failure(void **state)
{
	struct acname n;
	(void)state;
	parse_name(&n, "a");
	for_each_failing_alloc(parse_without_memory, &n);
}

static int start(void **state)
{
	char proxy[64];
	(void)state;
	int r = server_start(&server);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", server.http);
	setenv("http_proxy", proxy, 1);
	setenv("https_proxy", proxy, 1);
	unsetenv("no_proxy");
	unsetenv("SSL_CERT_DIR");
	setenv("SSL_CERT_FILE", server.ca, 1);
	return r;
}

static int stop(void **state)
{
	(void)state;
	return server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_render),      fixture_test(test_parse),
		fixture_test(test_limit),       fixture_test(test_walk),
		fixture_test(test_redirect),    fixture_test(test_failures),
		fixture_test(test_without_tls), fixture_test(test_large_page),
		fixture_test(test_steps_limit), fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
