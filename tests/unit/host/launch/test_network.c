/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

/* Takes one "flag=value" of @line after the other; then what must hold between them. */
static int take(struct network_wishes *w, char *line, struct err *e)
{
	static const struct {
		const char *flag;
		int (*take)(struct network_wishes *w, const char *value, struct err *e);
	} flags[] = {
		{ "net", network_add_nets },        { "netns", network_set_netns },
		{ "dns", network_add_dns },         { "search", network_add_dns_search },
		{ "opt", network_add_dns_options }, { "domain", network_set_dns_domain },
		{ "hosts", network_add_hosts },
	};
	for (char *word; (word = strsep(&line, " "));) {
		const char *flag = strsep(&word, "=");
		int r = -ENOENT;
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			if (strcmp(flags[i].flag, flag) == 0)
				r = flags[i].take(w, word, e);
		if (r < 0)
			return r;
	}
	return network_check(w, e);
}

static int parse(const char *line, char *copy, size_t size, struct network_wishes *w, struct err *e)
{
	network_wishes_init(w);
	snprintf(copy, size, "%s", line);
	return *copy ? take(w, copy, e) : 0;
}

/* The members, with blanks between them. */
static void join(const struct strv *list, char *out, size_t size)
{
	*out = '\0';
	for (size_t i = 0; i < list->n; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? " " : "",
			 list->v[i]);
}

static void test_args(void **state)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "", "" },
		{ "net=default", "--net=default" },
		{ "net=none", "--net=none" },
		{ "net=b,a net=c_1.x-y", "--net=b --net=a --net=c_1.x-y" },
		{ "net=a:IP=10.0.0.2,b:IP=fd00::2;K=V=;X=", "--net=a:IP=10.0.0.2 "
							    "--net=b:IP=fd00::2;K=V=;X=" },
		{ "net=all", "--net=all" },
		{ "net=all,a:K=V", "--net=all --net=a:K=V" },
		{ "netns=/run/netns/x", "--netns=/run/netns/x" },
		{ "dns=1.1.1.1,2001:DB8::1 dns=9.9.9.9 search=a,b opt=ndots:2,rotate domain=c.d",
		  "--dns=1.1.1.1 --dns=2001:db8::1 --dns=9.9.9.9 --dns-search=a --dns-search=b "
		  "--dns-opt=ndots:2 --dns-opt=rotate --dns-domain=c.d" },
		{ "dns=host", "--dns=host" },
		{ "dns=none hosts=host hosts=host",
		  "--dns=none --hosts-entry=host --hosts-entry=host" },
		{ "search=a", "--dns-search=a" },
		{ "domain=a domain=", "" },
		{ "hosts=10.0.0.1=a", "--hosts-entry=10.0.0.1=a" },
		{ "hosts=10.0.0.1=a,::0001=b hosts=10.0.0.1=c",
		  "--hosts-entry=10.0.0.1=a --hosts-entry=::1=b --hosts-entry=10.0.0.1=c" },
		{ "hosts=10.0.0.1=a,b.c,d,10.0.0.2=e,f",
		  "--hosts-entry=10.0.0.1=a,b.c,d --hosts-entry=10.0.0.2=e,f" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		cleanup_strv struct strv args;
		struct err e = ERR_INIT;
		char copy[256], got[512];
		strv_init(&args, NETWORK_ARGS_MAX);
		if (parse(cases[i].line, copy, sizeof(copy), &w, &e) != 0)
			fail_msg("%s: %s", cases[i].line, e.text);
		assert_int_equal(network_add_args(&w, &args), 0);
		join(&args, got, sizeof(got));
		assert_string_equal(got, cases[i].want);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
		{ "net=", "netname must not be empty" },
		{ "net=a,", "netname must not be empty" },
		{ "net=:K=V", "netname must not be empty" },
		{ "net=a,a", "found duplicate netname \"a\"" },
		{ "net=a:K=V net=a", "found duplicate netname \"a\"" },
		{ "net=a:b:c", "network \"a\" provided with invalid arguments: [b c]" },
		{ "net=a:b", "network \"a\" provided with invalid arguments: [b]" },
		{ "net=a:", "network \"a\" provided with invalid arguments: []" },
		{ "net=a:K=V;", "network \"a\" provided with invalid arguments: [K=V;]" },
		{ "net=a:=V", "network \"a\" provided with invalid arguments: [=V]" },
		{ "net=all:K=V", "arguments are not supported by special netname \"all\"" },
		{ "net=host:K=V", "arguments are not supported by special netname \"host\"" },
		{ "net=none:K=V", "arguments are not supported by special netname \"none\"" },
		{ "net=../x", "\"../x\" is not a name of a network (letters, digits, and '_', '.' "
			      "and '-' behind the first)" },
		{ "net=none,a", "--net=none excludes other networks" },
		{ "net=a net=host", "--net=host excludes other networks" },
		{ "netns=x", "--netns: \"x\" is not an absolute path" },
		{ "netns=/x net=none",
		  "--net and --netns exclude each other: what is in a namespace is all that the pod "
		  "gets" },
		{ "dns=1.1.1", "Invalid IP passed to --dns: 1.1.1" },
		{ "dns=", "Invalid IP passed to --dns: " },
		{ "dns=fe80::1%eth0", "Invalid IP passed to --dns: fe80::1%eth0" },
		{ "dns=host,1.1.1.1", "no other --dns options allowed when --dns=host is passed" },
		{ "dns=1.1.1.1 dns=none",
		  "no other --dns options allowed when --dns=none is passed" },
		{ "dns=none search=a",
		  "Cannot call --dns-opt, --dns-search, or --dns-domain with --dns=none" },
		{ "dns=host opt=a",
		  "Cannot call --dns-opt, --dns-search, or --dns-domain with --dns=host" },
		{ "dns=host domain=a",
		  "Cannot call --dns-opt, --dns-search, or --dns-domain with --dns=host" },
		{ "search=a,",
		  "--dns-search: \"\" is not a word of 1 to 253 printable characters" },
		{ "opt=#", "--dns-opt: \"#\" is not a word of 1 to 253 printable characters" },
		{ "domain=a\nb",
		  "--dns-domain: \"a?b\" is not a word of 1 to 253 printable characters" },
		{ "hosts=", "Did not understand --hosts-entry " },
		{ "hosts=a", "Did not understand --hosts-entry a" },
		{ "hosts=a,10.0.0.1=b", "Did not understand --hosts-entry a,10.0.0.1=b" },
		{ "hosts=host,10.0.0.1=b", "Did not understand --hosts-entry host,10.0.0.1=b" },
		{ "hosts=a=b", "Invalid IP passed to --hosts-entry: a" },
		{ "hosts=10.0.0.1=",
		  "--hosts-entry: \"\" is not a word of 1 to 253 printable characters" },
		{ "hosts=10.0.0.1=a,",
		  "--hosts-entry: \"\" is not a word of 1 to 253 printable characters" },
		{ "hosts=host hosts=10.0.0.1=a",
		  "cannot pass --hosts-entry=host with multiple hosts-entries" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		struct err e = ERR_INIT;
		char copy[256];
		assert_true(parse(cases[i].line, copy, sizeof(copy), &w, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

/* They become one variable of plugins, CNI_ARGS: printable, and without blanks. */
static void test_blanks_in_args(void **state)
{
	static const char *const values[] = { "a:K=V W", "a:K =V", "a:K=V\t", "a:K=\xc3\xa9" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		struct err e = ERR_INIT;
		network_wishes_init(&w);
		assert_int_equal(network_add_nets(&w, values[i], &e), -EINVAL);
		assert_true(
			str_starts(e.text, "network \"a\" provided with invalid arguments: [K"));
	}
}

static void test_limits(void **state)
{
	static const struct {
		int (*take)(struct network_wishes *w, const char *value, struct err *e);
		const char *before, *behind, *error;
		size_t max;
	} cases[] = {
		{ network_add_nets, "n", "", "--net: at most 6: Argument list too long",
		  STAGE1_NETS_MAX },
		{ network_add_dns, "10.0.0.", "", "--dns: at most 16: Argument list too long",
		  STAGE1_DNS_MAX },
		{ network_add_dns_search, "d", "",
		  "--dns-search: at most 16: Argument list too long", STAGE1_DNS_MAX },
		{ network_add_dns_options, "o:", "",
		  "--dns-opt: at most 16: Argument list too long", STAGE1_DNS_MAX },
		{ network_add_hosts, "10.0.0.", "=x",
		  "--hosts-entry: at most 64: Argument list too long", STAGE1_HOSTS_MAX },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		struct err e = ERR_INIT;
		network_wishes_init(&w);
		for (size_t n = 0; n <= cases[i].max; n++) {
			char value[32];
			snprintf(value, sizeof(value), "%s%d%s", cases[i].before, (int)n + 1,
				 cases[i].behind);
			int r = cases[i].take(&w, value, &e);
			assert_int_equal(r, n < cases[i].max ? 0 : -E2BIG);
		}
		assert_string_equal(e.text, cases[i].error);
	}
}

/* The longest name, arguments and word; and one byte more. */
static void test_lengths(void **state)
{
	static char text[STAGE1_NET_ARGS_MAX + 8];
	CLEANUP(network_wishes_deinit) struct network_wishes w;
	struct err e = ERR_INIT;
	(void)state;
	network_wishes_init(&w);
	memset(text, 'x', sizeof(text) - 1);
	text[STAGE1_NET_NAME_MAX] = '\0';
	assert_int_equal(network_add_nets(&w, text, &e), 0);
	memcpy(text, "a:K=", 4);
	text[STAGE1_NET_NAME_MAX] = 'x';
	text[STAGE1_NET_ARGS_MAX + 2] = '\0';
	assert_int_equal(network_add_nets(&w, text, &e), 0);
	text[0] = 'b';
	text[STAGE1_NET_ARGS_MAX + 2] = 'x';
	assert_int_equal(network_add_nets(&w, text, &e), -EINVAL);
	memset(text, 'y', STAGE1_NET_NAME_MAX + 1);
	text[STAGE1_NET_NAME_MAX + 1] = '\0';
	assert_int_equal(network_add_nets(&w, text, &e), -EINVAL);
	memset(text, 'x', STAGE1_DNS_TEXT_MAX);
	text[STAGE1_DNS_TEXT_MAX] = '\0';
	assert_int_equal(network_set_dns_domain(&w, text, &e), 0);
	text[STAGE1_DNS_TEXT_MAX] = 'x';
	text[STAGE1_DNS_TEXT_MAX + 1] = '\0';
	assert_int_equal(network_set_dns_domain(&w, text, &e), -EINVAL);
}

/* What a stage1 without networks, and one of rkt's, cannot do; what the latter is told. */
static void test_others(void **state)
{
	static const struct {
		const char *line, *flag, *beyond_rkt, *rkt;
	} cases[] = {
		{ "", NULL, NULL, "--net=default" },
		{ "net=none", NULL, NULL, "--net=none" },
		{ "net=a:K=V,b", "net", NULL, "--net=a:K=V,b" },
		{ "netns=/x", "netns", "netns", "--net=default" },
		{ "dns=host", "dns", NULL,
		  "--net=default --dns-conf-mode=resolv=host,hosts=default" },
		{ "dns=none hosts=host", "dns", NULL,
		  "--net=default --dns-conf-mode=resolv=none,hosts=host" },
		{ "hosts=host hosts=host", "hosts-entry", NULL,
		  "--net=default --dns-conf-mode=resolv=default,hosts=host" },
		{ "dns=1.1.1.1", "dns", "dns", NULL },
		{ "search=a", "dns-search", "dns-search", NULL },
		{ "opt=a", "dns-opt", "dns-opt", NULL },
		{ "domain=a", "dns-domain", "dns-domain", NULL },
		{ "hosts=10.0.0.1=a", "hosts-entry", "hosts-entry", NULL },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		cleanup_strv struct strv args;
		struct err e = ERR_INIT;
		char copy[256], got[512];
		strv_init(&args, 2);
		assert_int_equal(parse(cases[i].line, copy, sizeof(copy), &w, &e), 0);
		const char *flag = network_flag(&w), *beyond = network_flag_beyond_rkt(&w);
		assert_string_equal(flag ? flag : "", cases[i].flag ? cases[i].flag : "");
		assert_string_equal(beyond ? beyond : "",
				    cases[i].beyond_rkt ? cases[i].beyond_rkt : "");
		if (!cases[i].rkt)
			continue;
		assert_int_equal(network_add_rkt_net(&w, &args), 0);
		assert_int_equal(network_add_rkt_dns(&w, &args), 0);
		join(&args, got, sizeof(got));
		assert_string_equal(got, cases[i].rkt);
	}
}

static void test_ports(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
		{ "", "" },
		{ "net=a,b", "" },
		{ "net=none", "--port flag does not work with 'none' networking" },
		{ "net=host", "--port flag does not work with 'host' networking" },
		{ "netns=/x",
		  "--port flag does not work with --netns (ports are the business of who "
		  "made the namespace)" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(network_wishes_deinit) struct network_wishes w;
		struct err e = ERR_INIT;
		char copy[256];
		assert_int_equal(parse(cases[i].line, copy, sizeof(copy), &w, &e), 0);
		assert_int_equal(network_check_ports(&w, &e), *cases[i].error ? -EINVAL : 0);
		assert_string_equal(e.text, cases[i].error);
	}
}

static int parse_all(void *ctx)
{
	CLEANUP(network_wishes_deinit) struct network_wishes w;
	cleanup_strv struct strv args;
	char copy[128];
	(void)ctx;
	strv_init(&args, NETWORK_ARGS_MAX);
	int r = parse("net=a,b dns=1.1.1.1 search=a opt=b hosts=10.0.0.1=a,b", copy, sizeof(copy),
		      &w, NULL);
	return r == 0 ? network_add_args(&w, &args) : r;
}

static void test_memory_failure(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(parse_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_args),           fixture_test(test_refused),
		fixture_test(test_blanks_in_args), fixture_test(test_limits),
		fixture_test(test_lengths),        fixture_test(test_others),
		fixture_test(test_ports),          fixture_test(test_memory_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
