/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/file.h"

#define HOSTS       "/etc/hosts"
#define RESOLV_CONF "/etc/resolv.conf"

#define HOSTS_ADDED_MAX ((size_t)512) /* bytes behind the host's: two names, each in two lines */

/* Where systemd-resolved has the servers that it asks itself; RESOLV_CONF names 127.0.0.53 then. */
#define RESOLV_CONF_BEHIND "/run/systemd/resolve/resolv.conf"

void names_options_init(struct names_options *o)
{
	*o = (struct names_options){ 0 };
	strv_init(&o->servers, NET_DNS_LIST_MAX);
	strv_init(&o->search, NET_DNS_LIST_MAX);
	strv_init(&o->options, NET_DNS_LIST_MAX);
	strv_init(&o->hosts, NET_HOSTS_MAX);
}

void names_options_deinit(struct names_options *o)
{
	strv_deinit(&o->servers);
	strv_deinit(&o->search);
	strv_deinit(&o->options);
	strv_deinit(&o->hosts);
}

static bool says(const struct strv *words, const char *word)
{
	return words->n > 0 && strcmp(words->v[0], word) == 0;
}

bool names_has_servers(const struct names_options *o)
{
	return o->servers.n > 0 && !says(&o->servers, "none") && !says(&o->servers, "host");
}

/* What is left of @b as text; it is empty afterwards. */
static int take_text(struct buf *b, char **ret)
{
	*ret = buf_take_string(b);
	return *ret ? 0 : -ENOMEM;
}

/* ---- resolv.conf ---- */

/* Whether @ip is the host itself, or behind an interface that it does not name. */
static bool is_local_ipv6(const struct in6_addr *ip)
{
	return IN6_IS_ADDR_LOOPBACK(ip) || IN6_IS_ADDR_UNSPECIFIED(ip) ||
	       IN6_IS_ADDR_LINKLOCAL(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
}

/* The same of the first word of @len bytes, as resolvers read it; with one of the host's, too. */
static bool is_local(const char *text, size_t len)
{
	char word[INET6_ADDRSTRLEN + IF_NAMESIZE];
	struct in_addr ip;
	struct in6_addr ip6;
	snprintf(word, sizeof(word), "%.*s", (int)len, text);
	word[strcspn(word, " \t\r\n%")] = '\0'; /* "fe80::1%eth0" */
	if (inet_aton(word, &ip))
		return ip.s_addr == INADDR_ANY || ntohl(ip.s_addr) >> 24 == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, word, &ip6) == 1 && is_local_ipv6(&ip6);
}

/* True if the line of @len bytes is "nameserver IP"; *ret_local: and no pod reaches it. */
static bool is_server(const char *line, size_t len, bool *ret_local)
{
	static const char key[] = "nameserver";
	size_t n = sizeof(key) - 1;
	if (len <= n || strncmp(line, key, n) != 0 || (line[n] != ' ' && line[n] != '\t'))
		return false;
	while (n < len && (line[n] == ' ' || line[n] == '\t'))
		n++;
	*ret_local = is_local(line + n, len - n);
	return true;
}

int names_filter(const char *text, size_t len, struct buf *out)
{
	int found = 0, r = 0;
	for (size_t at = 0, n; r == 0 && at < len; at += n) {
		const char *end = memchr(text + at, '\n', len - at);
		bool local = false;
		n = end ? (size_t)(end - text) - at + 1 : len - at;
		if (is_server(text + at, n, &local))
			found |= !local;
		if (!local)
			r = buf_append(out, text + at, n);
	}
	return r < 0 ? r : found;
}

/* The usable part of the file of the host. 1 if there is one. */
static int filter_file(const char *path, struct buf *out)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r = file_read_path(path, NET_RESOLV_CONF_MAX, &text, &len);
	return r < 0 ? 0 : names_filter(text, len, out);
}

static int from_host(char **ret)
{
	cleanup_buf struct buf b, behind;
	buf_init(&b, NET_RESOLV_CONF_MAX);
	buf_init(&behind, NET_RESOLV_CONF_MAX);
	int r = filter_file(RESOLV_CONF, &b);
	if (r > 0)
		return take_text(&b, ret);
	r = r < 0 ? r : filter_file(RESOLV_CONF_BEHIND, &behind);
	return r > 0 ? take_text(&behind, ret) : r;
}

static int read_host_file(const char *path, size_t max, char **ret, struct err *e)
{
	size_t len;
	int r = file_read_path(path, max, ret, &len);
	return r < 0 ? err_sys(e, r, "\"%s\" of the host", path) : 0;
}

/* What the user says, and where he says nothing the network. */
static int compose(const struct names_options *o, const struct net_dns *of_network, char **ret)
{
	struct net_dns d = *of_network; /* borrowed lists */
	cleanup_buf struct buf b;
	int r = 0;
	if (o->servers.n > 0)
		d.nameservers = o->servers;
	if (o->search.n > 0)
		d.search = o->search;
	if (o->options.n > 0)
		d.options = o->options;
	if (o->domain)
		r = str_copy(d.domain, sizeof(d.domain), o->domain);
	buf_init(&b, NET_RESOLV_CONF_MAX);
	if (r == 0)
		r = net_dns_format(&d, &b);
	return r == 0 ? take_text(&b, ret) : r;
}

int names_resolv_conf(const struct names_options *o, const struct net_dns *of_network,
		      enum names_reach reach, char **ret, struct err *e)
{
	bool asked = o->servers.n > 0 || o->search.n > 0 || o->options.n > 0 || o->domain;
	int r = 0;
	*ret = NULL;
	if (says(&o->servers, "none"))
		return 0;
	if (says(&o->servers, "host"))
		return read_host_file(RESOLV_CONF, NET_RESOLV_CONF_MAX, ret, e);
	if (asked || !net_dns_is_empty(of_network))
		r = compose(o, of_network, ret);
	else if (reach == NAMES_REACH_OTHERS)
		r = from_host(ret);
	else if (reach == NAMES_REACH_ALL && access(RESOLV_CONF, F_OK) == 0)
		return read_host_file(RESOLV_CONF, NET_RESOLV_CONF_MAX, ret, e);
	return r < 0 ? err_sys(e, r, "--dns") : 0;
}

/* The host's own file, in which the pod's name is as unknown as in those of images. */
static int hosts_of_host(const char *hostname, char **ret, struct err *e)
{
	cleanup_free char *text = NULL;
	cleanup_buf struct buf b;
	buf_init(&b, NET_HOSTS_TEXT_MAX);
	int r = read_host_file(HOSTS, NET_HOSTS_TEXT_MAX - HOSTS_ADDED_MAX, &text, e);
	if (r < 0)
		return r;
	r = buf_puts(&b, text);
	if (r == 0)
		r = net_hosts_complete(hostname, &b);
	if (r == 0)
		r = take_text(&b, ret);
	return r < 0 ? err_sys(e, r, "--hosts-entry=host") : 0;
}

int names_hosts(const struct names_options *o, const char *hostname, char **ret, struct err *e)
{
	cleanup_buf struct buf b;
	buf_init(&b, NET_HOSTS_TEXT_MAX);
	*ret = NULL;
	if (says(&o->hosts, "host"))
		return hosts_of_host(hostname, ret, e);
	if (o->hosts.n == 0)
		return 0;
	int r = net_hosts_format(hostname, &o->hosts, &b);
	if (r == 0)
		r = take_text(&b, ret);
	return r < 0 ? err_sys(e, r, "--hosts-entry") : 0;
}
