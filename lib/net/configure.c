/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/configure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <netlink/route/rule.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/net/netlink.h"
#include "lib/os/fd.h"

static void cleanup_link_(struct rtnl_link **l)
{
	rtnl_link_put(*l);
}

static void cleanup_address_(struct rtnl_addr **a)
{
	rtnl_addr_put(*a);
}

static void cleanup_route_(struct rtnl_route **r)
{
	rtnl_route_put(*r);
}

static void cleanup_rule_(struct rtnl_rule **r)
{
	rtnl_rule_put(*r);
}

static int failed(int r, const char *interface, const char *what, const char *value, struct err *e)
{
	char text[NET_NAME_MAX + NET_PREFIX_TEXT_MAX + 64];
	snprintf(text, sizeof(text), "interface \"%s\": %s %s", interface, what, value);
	return netlink_failed(r, text, e);
}

/* ---- links ---- */

static struct rtnl_link *find_link(struct nl_cache *links, const unsigned char *mac)
{
	for (struct nl_object *o = nl_cache_get_first(links); o; o = nl_cache_get_next(o)) {
		struct rtnl_link *link = (struct rtnl_link *)o;
		struct nl_addr *a = rtnl_link_get_addr(link);
		if (a && nl_addr_get_len(a) == NET_MAC_LEN &&
		    memcmp(nl_addr_get_binary_addr(a), mac, NET_MAC_LEN) == 0)
			return link;
	}
	return NULL;
}

static int set_ipv6(const char *name, const char *setting)
{
	char path[64 + IFNAMSIZ];
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", name, setting);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* a kernel without IPv6 */
	return fd_write_all(fd, "0", 1);
}

int net_ignore_routers(const char *name, struct err *e)
{
	static const char *const settings[] = { "accept_ra", "autoconf" };
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int r = set_ipv6(name, settings[i]);
		if (r < 0)
			return err_sys(e, r, "interface \"%s\": cannot set %s", name, settings[i]);
	}
	return 0;
}

static int set_up_link(struct nl_sock *s, struct rtnl_link *link, const struct net_interface *i,
		       struct err *e)
{
	CLEANUP(cleanup_link_) struct rtnl_link *change = rtnl_link_alloc();
	if (!change)
		return err_sys(e, -ENOMEM, "interface \"%s\"", i->name);
	if (strcmp(rtnl_link_get_name(link), i->name) != 0)
		rtnl_link_set_name(change, i->name);
	rtnl_link_set_mtu(change, i->mtu);
	rtnl_link_set_flags(change, IFF_UP);
	int r = rtnl_link_change(s, link, change, 0);
	return r < 0 ? failed(r, i->name, "name, MTU,", "up", e) : 0;
}

/* An interface may have the name that another one is to get. */
static int free_names(struct nl_sock *s, struct nl_cache *links, const struct net *n, struct err *e)
{
	for (size_t i = 0; i < n->n_interfaces; i++) {
		struct rtnl_link *link = find_link(links, n->interfaces[i].mac);
		if (!link || strcmp(rtnl_link_get_name(link), n->interfaces[i].name) == 0)
			continue;
		CLEANUP(cleanup_link_) struct rtnl_link *change = rtnl_link_alloc();
		char name[NET_NAME_MAX + 1];
		snprintf(name, sizeof(name), "husk-%u", (unsigned)i);
		if (!change)
			return err_sys(e, -ENOMEM, "interface \"%s\"", name);
		rtnl_link_set_name(change, name);
		int r = rtnl_link_change(s, link, change, 0);
		if (r < 0)
			return failed(r, rtnl_link_get_name(link), "name", name, e);
	}
	return 0;
}

/* ---- addresses ---- */

static int broadcast_of(struct rtnl_addr *a, const struct net_prefix *p)
{
	struct net_ip ip = p->ip;
	if (ip.family != AF_INET || p->len > 30) /* RFC 3021 */
		return 0;
	for (int bit = p->len; bit < 32; bit++)
		ip.bytes[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
	cleanup_nl_addr struct nl_addr *all = netlink_addr(&ip, 32);
	return all ? rtnl_addr_set_broadcast(a, all) : -NLE_NOMEM;
}

/* Nobody else has it: who has made the network has seen to that. */
static int add_address(struct nl_sock *s, int index, const struct net_prefix *p)
{
	CLEANUP(cleanup_address_) struct rtnl_addr *a = rtnl_addr_alloc();
	cleanup_nl_addr struct nl_addr *local = netlink_addr(&p->ip, p->len);
	if (!a || !local)
		return -NLE_NOMEM;
	rtnl_addr_set_ifindex(a, index);
	int r = rtnl_addr_set_local(a, local);
	if (r == 0)
		r = broadcast_of(a, p);
	if (p->ip.family == AF_INET6)
		rtnl_addr_set_flags(a, IFA_F_NODAD);
	return r == 0 ? rtnl_addr_add(s, a, NLM_F_CREATE | NLM_F_REPLACE) : r;
}

static int add_addresses(struct nl_sock *s, int index, const struct net_interface *i, struct err *e)
{
	for (size_t k = 0; k < i->n_addresses; k++) {
		char text[NET_PREFIX_TEXT_MAX + 1];
		net_prefix_format(&i->addresses[k], text);
		int r = add_address(s, index, &i->addresses[k]);
		if (r < 0)
			return failed(r, i->name, "address", text, e);
	}
	return 0;
}

/* ---- routes ---- */

static int set_hop(struct rtnl_route *route, int index, const struct net_route *from)
{
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
	if (!hop)
		return -NLE_NOMEM;
	rtnl_route_nh_set_ifindex(hop, index);
	if (from->onlink)
		rtnl_route_nh_set_flags(hop, RTNH_F_ONLINK);
	if (from->via.family != AF_UNSPEC) {
		cleanup_nl_addr struct nl_addr *via =
			netlink_addr(&from->via, from->via.family == AF_INET ? 32 : 128);
		if (!via) {
			rtnl_route_nh_free(hop);
			return -NLE_NOMEM;
		}
		rtnl_route_nh_set_gateway(hop, via);
	}
	rtnl_route_add_nexthop(route, hop);
	return 0;
}

static int set_source(struct rtnl_route *route, const struct net_ip *ip)
{
	if (ip->family == AF_UNSPEC)
		return 0;
	cleanup_nl_addr struct nl_addr *a = netlink_addr(ip, ip->family == AF_INET ? 32 : 128);
	return a ? rtnl_route_set_pref_src(route, a) : -NLE_NOMEM;
}

static int add_route(struct nl_sock *s, int index, const struct net_route *from)
{
	CLEANUP(cleanup_route_) struct rtnl_route *route = rtnl_route_alloc();
	cleanup_nl_addr struct nl_addr *to = netlink_addr(&from->to.ip, from->to.len);
	if (!route || !to)
		return -NLE_NOMEM;
	rtnl_route_set_family(route, (uint8_t)from->to.ip.family);
	rtnl_route_set_table(route, from->table);
	rtnl_route_set_protocol(route, RTPROT_STATIC);
	rtnl_route_set_scope(route, from->link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
	if (from->metric)
		rtnl_route_set_priority(route, from->metric);
	if (from->mtu)
		rtnl_route_set_metric(route, RTAX_MTU, from->mtu);
	int r = rtnl_route_set_dst(route, to);
	if (r == 0)
		r = set_source(route, &from->from);
	if (r == 0)
		r = set_hop(route, index, from);
	return r == 0 ? rtnl_route_add(s, route, NLM_F_CREATE | NLM_F_REPLACE) : r;
}

static int add_routes(struct nl_sock *s, int index, const struct net_interface *i, struct err *e)
{
	for (size_t k = 0; k < i->n_routes; k++) {
		char text[NET_PREFIX_TEXT_MAX + 1];
		net_prefix_format(&i->routes[k].to, text);
		int r = add_route(s, index, &i->routes[k]);
		if (r < 0)
			return failed(r, i->name, "route to", text, e);
	}
	return 0;
}

/* ---- rules ---- */

static int add_rule(struct nl_sock *s, const struct net_rule *from)
{
	CLEANUP(cleanup_rule_) struct rtnl_rule *rule = rtnl_rule_alloc();
	bool has_from = from->from.ip.family != AF_UNSPEC, has_to = from->to.ip.family != AF_UNSPEC;
	cleanup_nl_addr struct nl_addr *src =
		has_from ? netlink_addr(&from->from.ip, from->from.len) : NULL;
	cleanup_nl_addr struct nl_addr *dst =
		has_to ? netlink_addr(&from->to.ip, from->to.len) : NULL;
	if (!rule || (has_from && !src) || (has_to && !dst))
		return -NLE_NOMEM;
	rtnl_rule_set_family(rule, has_from ? from->from.ip.family : from->to.ip.family);
	rtnl_rule_set_table(rule, from->table);
	rtnl_rule_set_prio(rule, from->priority);
	rtnl_rule_set_action(rule, FR_ACT_TO_TBL);
	int r = src ? rtnl_rule_set_src(rule, src) : 0;
	if (r == 0 && dst)
		r = rtnl_rule_set_dst(rule, dst);
	return r == 0 ? rtnl_rule_add(s, rule, NLM_F_CREATE | NLM_F_EXCL) : r;
}

/* ---- all ---- */

static int configure_interface(struct nl_sock *s, struct nl_cache *links,
			       const struct net_interface *i, struct err *e)
{
	char mac[NET_MAC_TEXT_MAX + 1];
	struct rtnl_link *link = find_link(links, i->mac);
	net_mac_format(i->mac, mac);
	if (!link)
		return err_set(e, -ENODEV, "interface \"%s\": no device has the address %s",
			       i->name, mac);
	int index = rtnl_link_get_ifindex(link);
	char name[IFNAMSIZ]; /* @links may have an older one */
	if (!if_indextoname((unsigned)index, name))
		return err_sys(e, -errno, "interface \"%s\"", i->name);
	int r = net_ignore_routers(name, e);
	if (r == 0)
		r = set_up_link(s, link, i, e);
	if (r == 0)
		r = add_addresses(s, index, i, e);
	return r == 0 ? add_routes(s, index, i, e) : r;
}

int net_configure(const struct net *n, struct err *e)
{
	cleanup_nl_cache struct nl_cache *links = NULL;
	cleanup_nl_socket struct nl_sock *s = netlink_open(e);
	if (!s)
		return -EIO;
	int r = rtnl_link_alloc_cache(s, AF_UNSPEC, &links);
	if (r < 0)
		return netlink_failed(r, "interfaces", e);
	r = free_names(s, links, n, e);
	for (size_t i = 0; r == 0 && i < n->n_interfaces; i++)
		r = configure_interface(s, links, &n->interfaces[i], e);
	for (size_t i = 0; r == 0 && i < n->n_rules; i++) {
		r = add_rule(s, &n->rules[i]);
		if (r < 0)
			return netlink_failed(r, "rule of routing", e);
	}
	return r;
}

int net_allow_ping(void)
{
	static const char all[] = "0 2147483647";
	cleanup_fd int fd =
		open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd_write_all(fd, all, strlen(all));
}
