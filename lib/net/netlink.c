/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/netlink.h"

#include <errno.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <string.h>
#include <sys/socket.h>

void netlink_cleanup_socket(struct nl_sock **s)
{
	nl_socket_free(*s);
}

void netlink_cleanup_cache(struct nl_cache **c)
{
	nl_cache_free(*c);
}

void netlink_cleanup_addr(struct nl_addr **a)
{
	nl_addr_put(*a);
}

struct nl_sock *netlink_open(struct err *e)
{
	struct nl_sock *s = nl_socket_alloc();
	if (!s) {
		err_sys(e, -ENOMEM, "netlink");
		return NULL;
	}
	int r = nl_connect(s, NETLINK_ROUTE);
	if (r == 0)
		return s;
	netlink_failed(r, "netlink", e);
	nl_socket_free(s);
	return NULL;
}

int netlink_failed(int nl_error, const char *what, struct err *e)
{
	return err_set(e, -EIO, "%s: %s", what, nl_geterror(nl_error));
}

struct net_ip netlink_ip(const struct nl_addr *a)
{
	struct net_ip ip = { .family = AF_UNSPEC };
	int family = a ? nl_addr_get_family(a) : AF_UNSPEC;
	if (family != AF_INET && family != AF_INET6)
		return ip;
	size_t len = nl_addr_get_len(a), max = family == AF_INET ? 4 : 16;
	ip.family = family;
	memcpy(ip.bytes, nl_addr_get_binary_addr(a), len < max ? len : max);
	return ip;
}

struct net_prefix netlink_prefix(const struct nl_addr *a)
{
	struct net_prefix p = { .ip = netlink_ip(a) };
	if (p.ip.family != AF_UNSPEC)
		p.len = (int)nl_addr_get_prefixlen(a);
	return p;
}

struct nl_addr *netlink_addr(const struct net_ip *ip, int len)
{
	struct nl_addr *a = nl_addr_build(ip->family, ip->bytes, ip->family == AF_INET ? 4 : 16);
	if (a)
		nl_addr_set_prefixlen(a, len);
	return a;
}
