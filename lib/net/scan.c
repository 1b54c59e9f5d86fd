/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/scan.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <netlink/route/rule.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/str.h"
#include "lib/net/netlink.h"

/* Priorities of the rules that the kernel makes: local, main, default. */
#define RULE_LOCAL   0u
#define RULE_MAIN    32766u
#define RULE_DEFAULT 32767u

/* What is being read, and the indices of its interfaces. */
struct scan {
	struct net *net;
	int indices[NET_INTERFACES_MAX];
};

static struct net_interface *find_interface(const struct scan *s, int index)
{
	for (size_t i = 0; i < s->net->n_interfaces; i++)
		if (s->indices[i] == index)
			return &s->net->interfaces[i];
	return NULL;
}

/* ---- links ---- */

/* A tap is the end of somebody else's wire: of another VM, for instance. */
static bool is_wanted(struct rtnl_link *link)
{
	unsigned flags = rtnl_link_get_flags(link);
	const char *type = rtnl_link_get_type(link);
	return rtnl_link_get_arptype(link) == ARPHRD_ETHER && (flags & IFF_UP) &&
	       (!type || strcmp(type, "tun") != 0);
}

static int take_link(struct scan *s, struct rtnl_link *link, struct err *e)
{
	struct nl_addr *mac = rtnl_link_get_addr(link);
	const char *name = rtnl_link_get_name(link);
	if (!is_wanted(link))
		return 0;
	if (s->net->n_interfaces == NET_INTERFACES_MAX)
		return err_set(e, -E2BIG,
			       "interface \"%s\": a pod can have %d (connect it to less)", name,
			       NET_INTERFACES_MAX);
	if (!mac || nl_addr_get_len(mac) != NET_MAC_LEN || !net_name_is_valid(name))
		return err_set(e, -EINVAL, "interface \"%.15s\": it has no usable name or address",
			       name);
	s->indices[s->net->n_interfaces] = rtnl_link_get_ifindex(link);
	struct net_interface *i = &s->net->interfaces[s->net->n_interfaces++];
	str_copy(i->name, sizeof(i->name), name);
	memcpy(i->mac, nl_addr_get_binary_addr(mac), NET_MAC_LEN);
	i->mtu = MIN(rtnl_link_get_mtu(link), (unsigned)NET_MTU_MAX);
	return 0;
}

static int scan_links(struct scan *s, struct nl_sock *sock, struct err *e)
{
	cleanup_nl_cache struct nl_cache *cache = NULL;
	int r = rtnl_link_alloc_cache(sock, AF_UNSPEC, &cache);
	if (r < 0)
		return netlink_failed(r, "interfaces", e);
	for (struct nl_object *o = nl_cache_get_first(cache); r == 0 && o; o = nl_cache_get_next(o))
		r = take_link(s, (struct rtnl_link *)o, e);
	return r;
}

/* ---- addresses ---- */

static int take_address(struct scan *s, struct rtnl_addr *a, struct err *e)
{
	struct net_interface *i = find_interface(s, rtnl_addr_get_ifindex(a));
	struct net_prefix p = netlink_prefix(rtnl_addr_get_local(a));
	if (!i || p.ip.family == AF_UNSPEC ||
	    (p.ip.family == AF_INET6 && rtnl_addr_get_scope(a) == RT_SCOPE_LINK))
		return 0;
	if (i->n_addresses == NET_ADDRESSES_MAX)
		return err_set(e, -E2BIG, "interface \"%s\": more than %d addresses", i->name,
			       NET_ADDRESSES_MAX);
	p.len = rtnl_addr_get_prefixlen(a);
	i->addresses[i->n_addresses++] = p;
	return 0;
}

static int scan_addresses(struct scan *s, struct nl_sock *sock, struct err *e)
{
	cleanup_nl_cache struct nl_cache *cache = NULL;
	int r = rtnl_addr_alloc_cache(sock, &cache);
	if (r < 0)
		return netlink_failed(r, "addresses", e);
	for (struct nl_object *o = nl_cache_get_first(cache); r == 0 && o; o = nl_cache_get_next(o))
		r = take_address(s, (struct rtnl_addr *)o, e);
	return r;
}

/* ---- routes ---- */

/* Those of the kernel come with addresses. */
static bool is_made(struct rtnl_route *route)
{
	return rtnl_route_get_protocol(route) != RTPROT_KERNEL &&
	       rtnl_route_get_table(route) != RT_TABLE_LOCAL &&
	       rtnl_route_get_type(route) == RTN_UNICAST && rtnl_route_get_nnexthops(route) == 1 &&
	       (rtnl_route_get_flags(route) & RTM_F_CLONED) == 0;
}

static int take_route(struct scan *s, struct rtnl_route *from, struct err *e)
{
	if (!is_made(from))
		return 0;
	struct rtnl_nexthop *hop = rtnl_route_nexthop_n(from, 0);
	struct net_interface *i = find_interface(s, rtnl_route_nh_get_ifindex(hop));
	uint32_t mtu = 0;
	if (!i)
		return 0;
	if (i->n_routes == NET_ROUTES_MAX)
		return err_set(e, -E2BIG, "interface \"%s\": more than %d routes", i->name,
			       NET_ROUTES_MAX);
	struct net_route *to = &i->routes[i->n_routes++];
	rtnl_route_get_metric(from, RTAX_MTU, &mtu);
	*to = (struct net_route){
		.to = netlink_prefix(rtnl_route_get_dst(from)),
		.via = netlink_ip(rtnl_route_nh_get_gateway(hop)),
		.from = netlink_ip(rtnl_route_get_pref_src(from)),
		.table = rtnl_route_get_table(from),
		.metric = rtnl_route_get_priority(from),
		.mtu = MIN(mtu, (uint32_t)NET_MTU_MAX),
		.link = rtnl_route_get_scope(from) == RT_SCOPE_LINK,
		.onlink = rtnl_route_nh_get_flags(hop) & RTNH_F_ONLINK,
	};
	if (to->to.ip.family == AF_UNSPEC) /* the default route of libnl has no address */
		to->to = (struct net_prefix){ .ip.family = rtnl_route_get_family(from) };
	return 0;
}

/* A gateway must be reachable when its route is made. */
static int compare_routes(const void *a, const void *b)
{
	const struct net_route *x = a, *y = b;
	bool x_via = x->via.family != AF_UNSPEC, y_via = y->via.family != AF_UNSPEC;
	if (x_via != y_via)
		return x_via - y_via;
	return y->to.len - x->to.len;
}

static int scan_routes(struct scan *s, struct nl_sock *sock, struct err *e)
{
	cleanup_nl_cache struct nl_cache *cache = NULL;
	int r = rtnl_route_alloc_cache(sock, AF_UNSPEC, 0, &cache);
	if (r < 0)
		return netlink_failed(r, "routes", e);
	for (struct nl_object *o = nl_cache_get_first(cache); r == 0 && o; o = nl_cache_get_next(o))
		r = take_route(s, (struct rtnl_route *)o, e);
	for (size_t i = 0; i < s->net->n_interfaces; i++)
		qsort(s->net->interfaces[i].routes, s->net->interfaces[i].n_routes,
		      sizeof(struct net_route), compare_routes);
	return r;
}

/* ---- rules ---- */

/*
 * A rule of addresses alone. With a selector that means nothing in the pod, or none, or another
 * action than a table, it is not for the pod.
 */
static bool is_of_addresses(struct rtnl_rule *r)
{
	bool has_mark = rtnl_rule_get_mark(r) != 0 && rtnl_rule_get_mark(r) != UINT32_MAX;
	return (rtnl_rule_get_src(r) || rtnl_rule_get_dst(r)) && !rtnl_rule_get_iif(r) &&
	       !rtnl_rule_get_oif(r) && !has_mark && rtnl_rule_get_action(r) == FR_ACT_TO_TBL;
}

static int take_rule(struct scan *s, struct rtnl_rule *from, struct err *e)
{
	uint32_t priority = rtnl_rule_get_prio(from), table = rtnl_rule_get_table(from);
	if (priority == RULE_LOCAL || priority == RULE_MAIN || priority == RULE_DEFAULT ||
	    table == 0 || !is_of_addresses(from))
		return 0;
	if (s->net->n_rules == NET_RULES_MAX)
		return err_set(e, -E2BIG, "more than %d rules of routing", NET_RULES_MAX);
	s->net->rules[s->net->n_rules++] =
		(struct net_rule){ .from = netlink_prefix(rtnl_rule_get_src(from)),
				   .to = netlink_prefix(rtnl_rule_get_dst(from)),
				   .table = table,
				   .priority = priority };
	return 0;
}

/* A kernel without rules has none. */
static int scan_rules(struct scan *s, struct nl_sock *sock, struct err *e)
{
	cleanup_nl_cache struct nl_cache *cache = NULL;
	int r = 0;
	if (rtnl_rule_alloc_cache(sock, AF_UNSPEC, &cache) < 0)
		return 0;
	for (struct nl_object *o = nl_cache_get_first(cache); r == 0 && o; o = nl_cache_get_next(o))
		r = take_rule(s, (struct rtnl_rule *)o, e);
	return r;
}

int net_scan(struct net *ret, struct err *e)
{
	struct scan s = { .net = ret };
	memset(ret, 0, sizeof(*ret));
	cleanup_nl_socket struct nl_sock *sock = netlink_open(e);
	if (!sock)
		return -EIO;
	int r = scan_links(&s, sock, e);
	if (r == 0)
		r = scan_addresses(&s, sock, e);
	if (r == 0)
		r = scan_routes(&s, sock, e);
	return r == 0 ? scan_rules(&s, sock, e) : r;
}
