/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DNS_HOST "host"
#define DNS_NONE "none"
#define IP_MAX   45 /* INET6_ADDRSTRLEN without the NUL */

void network_wishes_init(struct network_wishes *w)
{
	*w = (struct network_wishes){ .netns = NULL };
	strv_init(&w->nets, STAGE1_NETS_MAX);
	strv_init(&w->dns, STAGE1_DNS_MAX);
	strv_init(&w->dns_search, STAGE1_DNS_MAX);
	strv_init(&w->dns_options, STAGE1_DNS_MAX);
	strv_init(&w->hosts, STAGE1_HOSTS_MAX);
	strv_init(&w->config_dirs, STAGE1_NET_DIRS_MAX);
	strv_init(&w->plugin_dirs, STAGE1_CNI_PATHS_MAX);
}

void network_wishes_deinit(struct network_wishes *w)
{
	strv_deinit(&w->nets);
	strv_deinit(&w->dns);
	strv_deinit(&w->dns_search);
	strv_deinit(&w->dns_options);
	strv_deinit(&w->hosts);
	strv_deinit(&w->config_dirs);
	strv_deinit(&w->plugin_dirs);
	network_wishes_init(w);
}

/* Takes one member of a list: @len bytes at @text. */
typedef int (*take_fn)(struct network_wishes *w, const char *text, size_t len, struct err *e);

/* Hands the members of @value, which have commas between them, to @take. */
static int each_of(struct network_wishes *w, const char *value, take_fn take, struct err *e)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		int r = take(w, value, len, e);
		if (r < 0 || value[len] == '\0')
			return r;
		value += len + 1;
	}
}

/* Adds @len bytes of @text to the list of --@flag. */
static int add_text(struct strv *list, const char *flag, const char *text, size_t len,
		    struct err *e)
{
	int r = strv_addf(list, "%.*s", (int)len, text);
	return r < 0 ? err_sys(e, r, "--%s: at most %zu", flag, list->max) : 0;
}

/* ---- networks ---- */

/* As CNI has it: what is no path, no option, and nothing for a shell. */
static bool is_net_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80 ||
		    (!isalnum((unsigned char)s[i]) && (i == 0 || !strchr("_.-", s[i]))))
			return false;
	return len > 0 && len <= STAGE1_NET_NAME_MAX;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(s, word, len) == 0;
}

/* K=V;K2=V2, which become CNI_ARGS; printable, without blanks. */
static bool are_args(const char *s, size_t len)
{
	size_t key = 0, at = 0;
	bool has_value = false;
	for (; at < len; at++) {
		if (s[at] <= ' ' || s[at] > '~')
			return false;
		if (s[at] == ';') {
			if (!has_value)
				return false;
			has_value = false;
			key = at + 1;
		} else if (s[at] == '=' && at > key) {
			has_value = true;
		}
	}
	return has_value && len <= STAGE1_NET_ARGS_MAX;
}

/* "b c" of "b:c", as Go prints a list. */
static int bad_args(const char *net, size_t len, size_t name_len, struct err *e)
{
	char text[STAGE1_NET_NAME_MAX + 1];
	size_t n = MIN(len - name_len - 1, sizeof(text) - 1);
	memcpy(text, net + name_len + 1, n);
	text[n] = '\0';
	for (char *colon = text; (colon = strchr(colon, ':'));)
		*colon = ' ';
	return err_set(e, -EINVAL, "network \"%.*s\" provided with invalid arguments: [%s]",
		       (int)name_len, net, text);
}

static int take_net(struct network_wishes *w, const char *net, size_t len, struct err *e)
{
	size_t name_len = strcspn(net, ":,");
	bool has_args = name_len < len;
	if (name_len == 0)
		return err_set(e, -EINVAL, "netname must not be empty");
	if (!is_net_name(net, name_len))
		return err_set(e, -EINVAL,
			       "\"%.*s\" is not a name of a network (letters, digits, and '_', '.' "
			       "and '-' behind the first)",
			       (int)MIN(name_len, (size_t)80), net);
	for (size_t i = 0; i < w->nets.n; i++)
		if (is_word(net, name_len, w->nets.v[i]) ||
		    (strncmp(w->nets.v[i], net, name_len) == 0 && w->nets.v[i][name_len] == ':'))
			return err_set(e, -EEXIST, "found duplicate netname \"%.*s\"",
				       (int)name_len, net);
	if (has_args &&
	    (is_word(net, name_len, STAGE1_NET_ALL) || is_word(net, name_len, STAGE1_NET_HOST) ||
	     is_word(net, name_len, STAGE1_NET_NONE)))
		return err_set(e, -EINVAL,
			       "arguments are not supported by special netname \"%.*s\"",
			       (int)name_len, net);
	if (has_args && !are_args(net + name_len + 1, len - name_len - 1))
		return bad_args(net, len, name_len, e);
	return add_text(&w->nets, STAGE1_OPT_NET, net, len, e);
}

int network_add_nets(struct network_wishes *w, const char *value, struct err *e)
{
	return each_of(w, value, take_net, e);
}

int network_set_netns(struct network_wishes *w, const char *value, struct err *e)
{
	if (value[0] != '/' || strlen(value) >= PATH_MAX)
		return err_set(e, -EINVAL, "--netns: \"%.80s\" is not an absolute path", value);
	w->netns = value;
	return 0;
}

/* ---- names ---- */

/* Writes the address @s of @len bytes as inet_ntop(3) does. 0 or -EINVAL. */
static int normal_ip(const char *s, size_t len, char out[IP_MAX + 1])
{
	char text[IP_MAX + 1];
	struct in6_addr bytes; /* room for both */
	if (len > IP_MAX)
		return -EINVAL;
	memcpy(text, s, len);
	text[len] = '\0';
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	return inet_pton(family, text, &bytes) == 1 && inet_ntop(family, &bytes, out, IP_MAX + 1)
		       ? 0
		       : -EINVAL;
}

static int take_dns(struct network_wishes *w, const char *text, size_t len, struct err *e)
{
	char ip[IP_MAX + 1];
	if (is_word(text, len, DNS_HOST) || is_word(text, len, DNS_NONE))
		return add_text(&w->dns, STAGE1_OPT_DNS, text, len, e);
	if (normal_ip(text, len, ip) < 0)
		return err_set(e, -EINVAL, "Invalid IP passed to --dns: %.*s",
			       (int)MIN(len, (size_t)80), text);
	return add_text(&w->dns, STAGE1_OPT_DNS, ip, strlen(ip), e);
}

int network_add_dns(struct network_wishes *w, const char *value, struct err *e)
{
	return each_of(w, value, take_dns, e);
}

/* Whether it can be a word of resolv.conf(5) or hosts(5). 0, or -EINVAL and @e. */
static int check_word(const char *flag, const char *s, size_t len, struct err *e)
{
	bool is = len > 0 && len <= STAGE1_DNS_TEXT_MAX;
	for (size_t i = 0; is && i < len; i++)
		is = s[i] > ' ' && s[i] <= '~' && s[i] != '#' && s[i] != ';';
	return is ? 0
		  : err_set(e, -EINVAL,
			    "--%s: \"%.*s\" is not a word of 1 to %d printable characters", flag,
			    (int)MIN(len, (size_t)80), s, STAGE1_DNS_TEXT_MAX);
}

static int take_search(struct network_wishes *w, const char *text, size_t len, struct err *e)
{
	int r = check_word(STAGE1_OPT_DNS_SEARCH, text, len, e);
	return r < 0 ? r : add_text(&w->dns_search, STAGE1_OPT_DNS_SEARCH, text, len, e);
}

int network_add_dns_search(struct network_wishes *w, const char *value, struct err *e)
{
	return each_of(w, value, take_search, e);
}

static int take_option(struct network_wishes *w, const char *text, size_t len, struct err *e)
{
	int r = check_word(STAGE1_OPT_DNS_OPT, text, len, e);
	return r < 0 ? r : add_text(&w->dns_options, STAGE1_OPT_DNS_OPT, text, len, e);
}

int network_add_dns_options(struct network_wishes *w, const char *value, struct err *e)
{
	return each_of(w, value, take_option, e);
}

int network_set_dns_domain(struct network_wishes *w, const char *value, struct err *e)
{
	int r = *value ? check_word(STAGE1_OPT_DNS_DOMAIN, value, strlen(value), e) : 0;
	if (r == 0)
		w->dns_domain = *value ? value : NULL;
	return r;
}

/*
 * Takes the host at *@at, "IP=NAME", and the names behind it, "NAME", and moves *@at to what
 * follows the comma behind them.
 */
static int take_host(struct network_wishes *w, const char **at, struct err *e)
{
	const char *entry = *at;
	char ip[IP_MAX + 1];
	size_t whole = strcspn(entry, ","), ip_len = strcspn(entry, "=,"), len = whole;
	if (ip_len == whole)
		return err_set(e, -EINVAL, "Did not understand --hosts-entry %.80s", entry);
	if (normal_ip(entry, ip_len, ip) < 0)
		return err_set(e, -EINVAL, "Invalid IP passed to --hosts-entry: %.*s",
			       (int)MIN(ip_len, (size_t)80), entry);
	const char *name = entry + ip_len + 1, *names = name;
	for (;;) {
		size_t n = (size_t)(entry + len - name);
		int r = check_word(STAGE1_OPT_HOSTS, name, n, e);
		if (r < 0)
			return r;
		if (!entry[len] || memchr(entry + len + 1, '=', strcspn(entry + len + 1, ",")))
			break;
		name = entry + len + 1;
		len += 1 + strcspn(name, ",");
	}
	*at = entry + len + (entry[len] == ',');
	int r = strv_addf(&w->hosts, "%s=%.*s", ip, (int)(entry + len - names), names);
	return r < 0 ? err_sys(e, r, "--hosts-entry: at most %zu", w->hosts.max) : 0;
}

int network_add_hosts(struct network_wishes *w, const char *value, struct err *e)
{
	if (strcmp(value, DNS_HOST) == 0)
		return add_text(&w->hosts, STAGE1_OPT_HOSTS, value, strlen(value), e);
	const char *at = value;
	int r;
	do
		r = take_host(w, &at, e);
	while (r == 0 && *at);
	return r;
}

/* ---- together ---- */

bool network_is_only(const struct network_wishes *w, const char *name)
{
	return w->nets.n == 1 && strcmp(w->nets.v[0], name) == 0;
}

static bool has(const struct strv *list, const char *word)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], word) == 0)
			return true;
	return false;
}

/* Which of these two words, that exclude all others, is in the list; NULL: none. */
static const char *special(const struct strv *list, const char *a, const char *b)
{
	return has(list, a) ? a : has(list, b) ? b : NULL;
}

static int check_dns(const struct network_wishes *w, struct err *e)
{
	const char *only = special(&w->dns, DNS_HOST, DNS_NONE);
	if (!only)
		return 0;
	if (w->dns.n > 1)
		return err_set(e, -EINVAL, "no other --dns options allowed when --dns=%s is passed",
			       only);
	if (w->dns_search.n > 0 || w->dns_options.n > 0 || w->dns_domain)
		return err_set(e, -EINVAL,
			       "Cannot call --dns-opt, --dns-search, or --dns-domain with --dns=%s",
			       only);
	return 0;
}

int network_check(const struct network_wishes *w, struct err *e)
{
	const char *only = special(&w->nets, STAGE1_NET_NONE, STAGE1_NET_HOST);
	if (only && w->nets.n > 1)
		return err_set(e, -EINVAL, "--net=%s excludes other networks", only);
	if (w->netns && w->nets.n > 0)
		return err_set(e, -EINVAL,
			       "--net and --netns exclude each other: what is in a namespace is "
			       "all that the pod gets");
	for (size_t i = 0; w->hosts.n > 1 && i < w->hosts.n; i++)
		if (has(&w->hosts, DNS_HOST) && strcmp(w->hosts.v[i], DNS_HOST) != 0)
			return err_set(
				e, -EINVAL,
				"cannot pass --hosts-entry=host with multiple hosts-entries");
	return check_dns(w, e);
}

int network_check_ports(const struct network_wishes *w, struct err *e)
{
	const char *only = special(&w->nets, STAGE1_NET_NONE, STAGE1_NET_HOST);
	if (only)
		return err_set(e, -EINVAL, "--port flag does not work with '%s' networking", only);
	if (w->netns)
		return err_set(e, -EINVAL,
			       "--port flag does not work with --netns (ports are the business of "
			       "who made the namespace)");
	return 0;
}

/* Of what is about names. */
static const char *names_flag(const struct network_wishes *w)
{
	return w->dns.n > 0           ? STAGE1_OPT_DNS
	       : w->dns_search.n > 0  ? STAGE1_OPT_DNS_SEARCH
	       : w->dns_options.n > 0 ? STAGE1_OPT_DNS_OPT
	       : w->dns_domain        ? STAGE1_OPT_DNS_DOMAIN
	       : w->hosts.n > 0       ? STAGE1_OPT_HOSTS
				      : NULL;
}

const char *network_flag(const struct network_wishes *w)
{
	if (w->nets.n > 0 && !network_is_only(w, STAGE1_NET_NONE))
		return STAGE1_OPT_NET;
	return w->netns ? STAGE1_OPT_NETNS : names_flag(w);
}

/* ---- in words ---- */

static int add_each(const struct strv *list, const char *flag, struct strv *args)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = strv_addf(args, "--%s=%s", flag, list->v[i]);
	return r;
}

int network_add_args(const struct network_wishes *w, struct strv *args)
{
	int r = add_each(&w->nets, STAGE1_OPT_NET, args);
	if (r == 0 && w->netns)
		r = strv_addf(args, "--%s=%s", STAGE1_OPT_NETNS, w->netns);
	if (r == 0)
		r = add_each(&w->config_dirs, STAGE1_OPT_NET_CONFIG, args);
	if (r == 0)
		r = add_each(&w->plugin_dirs, STAGE1_OPT_CNI_PATH, args);
	if (r == 0)
		r = add_each(&w->dns, STAGE1_OPT_DNS, args);
	if (r == 0)
		r = add_each(&w->dns_search, STAGE1_OPT_DNS_SEARCH, args);
	if (r == 0)
		r = add_each(&w->dns_options, STAGE1_OPT_DNS_OPT, args);
	if (r == 0 && w->dns_domain)
		r = strv_addf(args, "--%s=%s", STAGE1_OPT_DNS_DOMAIN, w->dns_domain);
	return r == 0 ? add_each(&w->hosts, STAGE1_OPT_HOSTS, args) : r;
}

/* What rkt itself writes into files of its stage1, which husk does not mount. */
const char *network_flag_beyond_rkt(const struct network_wishes *w)
{
	if (w->netns)
		return STAGE1_OPT_NETNS;
	if (w->dns.n > 0 && !special(&w->dns, DNS_HOST, DNS_NONE))
		return STAGE1_OPT_DNS;
	if (w->dns.n == 0 && (w->dns_search.n > 0 || w->dns_options.n > 0 || w->dns_domain))
		return names_flag(w);
	return w->hosts.n > 0 && !has(&w->hosts, DNS_HOST) ? STAGE1_OPT_HOSTS : NULL;
}

int network_add_rkt_net(const struct network_wishes *w, struct strv *args)
{
	char list[STAGE1_NETS_MAX * (STAGE1_NET_NAME_MAX + STAGE1_NET_ARGS_MAX + 2) + 1] = "";
	for (size_t i = 0, at = 0; i < w->nets.n && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i > 0 ? "," : "",
				       w->nets.v[i]);
	return strv_addf(args, "--net=%s", w->nets.n > 0 ? list : "default");
}

bool network_has_rkt_dns(const struct network_wishes *w)
{
	return w->dns.n > 0 || w->hosts.n > 0;
}

int network_add_rkt_dns(const struct network_wishes *w, struct strv *args)
{
	if (!network_has_rkt_dns(w))
		return 0;
	return strv_addf(args, "--dns-conf-mode=resolv=%s,hosts=%s",
			 w->dns.n > 0 ? w->dns.v[0] : "default",
			 w->hosts.n > 0 ? w->hosts.v[0] : "default");
}
