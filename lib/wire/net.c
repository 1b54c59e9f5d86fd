/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/num.h"

/* Table "main" of RTA_TABLE; a document that says nothing means it. */
#define TABLE_MAIN 254

/* ---- addresses ---- */

int net_ip_parse(const char *s, struct net_ip *ret)
{
	struct net_ip ip = { .family = strchr(s, ':') ? AF_INET6 : AF_INET };
	if (inet_pton(ip.family, s, ip.bytes) != 1)
		return -EINVAL;
	*ret = ip;
	return 0;
}

static int bits_of(const struct net_ip *ip)
{
	return ip->family == AF_INET ? 32 : 128;
}

int net_prefix_parse(const char *s, struct net_prefix *ret)
{
	char text[NET_IP_TEXT_MAX + 1];
	struct net_prefix p;
	const char *slash = strchr(s, '/');
	size_t n = slash ? (size_t)(slash - s) : strlen(s);
	uint64_t len;
	if (n > NET_IP_TEXT_MAX)
		return -EINVAL;
	memcpy(text, s, n);
	text[n] = '\0';
	int r = net_ip_parse(text, &p.ip);
	if (r < 0)
		return r;
	len = (uint64_t)bits_of(&p.ip);
	if (slash && num_parse_u64(slash + 1, len, &len) < 0)
		return -EINVAL;
	p.len = (int)len;
	*ret = p;
	return 0;
}

int net_mac_parse(const char *s, unsigned char ret[NET_MAC_LEN])
{
	unsigned char mac[NET_MAC_LEN];
	char digits[3] = { 0 };
	if (strlen(s) != NET_MAC_TEXT_MAX)
		return -EINVAL;
	for (size_t i = 0; i < NET_MAC_LEN; i++) {
		memcpy(digits, s + 3 * i, 2);
		if (hex_decode(digits, &mac[i], 1) < 0 ||
		    (i < NET_MAC_LEN - 1 && s[3 * i + 2] != ':'))
			return -EINVAL;
	}
	if (mac[0] & 1) /* a group */
		return -EINVAL;
	memcpy(ret, mac, NET_MAC_LEN);
	return 0;
}

void net_ip_format(const struct net_ip *ip, char out[NET_IP_TEXT_MAX + 1])
{
	if (ip->family == AF_UNSPEC || !inet_ntop(ip->family, ip->bytes, out, NET_IP_TEXT_MAX + 1))
		out[0] = '\0';
}

void net_prefix_format(const struct net_prefix *p, char out[NET_PREFIX_TEXT_MAX + 1])
{
	char ip[NET_IP_TEXT_MAX + 1];
	net_ip_format(&p->ip, ip);
	snprintf(out, NET_PREFIX_TEXT_MAX + 1, "%s/%d", ip, p->len);
}

void net_mac_format(const unsigned char mac[NET_MAC_LEN], char out[NET_MAC_TEXT_MAX + 1])
{
	snprintf(out, NET_MAC_TEXT_MAX + 1, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
}

bool net_name_is_valid(const char *s)
{
	size_t n = strlen(s);
	if (n == 0 || n > NET_NAME_MAX || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || *s == '/' || *s == ':')
			return false;
	return true;
}

/* ---- writing ---- */

static int put_ip(struct json_object *body, const char *key, const struct net_ip *ip)
{
	char text[NET_IP_TEXT_MAX + 1];
	if (ip->family == AF_UNSPEC)
		return 0;
	net_ip_format(ip, text);
	return json_put_str(body, key, text);
}

static int put_prefix(struct json_object *body, const char *key, const struct net_prefix *p)
{
	char text[NET_PREFIX_TEXT_MAX + 1];
	if (p->ip.family == AF_UNSPEC)
		return 0;
	net_prefix_format(p, text);
	return json_put_str(body, key, text);
}

static int put_number(struct json_object *body, const char *key, uint32_t value, uint32_t usual)
{
	return value == usual ? 0 : json_put_int(body, key, value);
}

static int put_flag(struct json_object *body, const char *key, bool value)
{
	return value ? json_put_bool(body, key, true) : 0;
}

/* Appends @item, which is given up in any case, unless @r is a failure. */
static int append(struct json_object *list, struct json_object *item, int r)
{
	if (r == 0)
		return json_append(list, item);
	json_object_put(item);
	return r;
}

static int append_route(struct json_object *list, const struct net_route *route)
{
	struct json_object *body = json_object_new_object();
	int r = body ? put_prefix(body, "to", &route->to) : -ENOMEM;
	if (r == 0)
		r = put_ip(body, "via", &route->via);
	if (r == 0)
		r = put_ip(body, "from", &route->from);
	if (r == 0)
		r = put_number(body, "table", route->table, TABLE_MAIN);
	if (r == 0)
		r = put_number(body, "metric", route->metric, 0);
	if (r == 0)
		r = put_number(body, "mtu", route->mtu, 0);
	if (r == 0)
		r = put_flag(body, "link", route->link);
	if (r == 0)
		r = put_flag(body, "onlink", route->onlink);
	return append(list, body, r);
}

static int append_rule(struct json_object *list, const struct net_rule *rule)
{
	struct json_object *body = json_object_new_object();
	int r = body ? put_prefix(body, "from", &rule->from) : -ENOMEM;
	if (r == 0)
		r = put_prefix(body, "to", &rule->to);
	if (r == 0)
		r = json_put_int(body, "table", rule->table);
	if (r == 0)
		r = json_put_int(body, "priority", rule->priority);
	return append(list, body, r);
}

static int put_addresses(struct json_object *body, const struct net_interface *i)
{
	struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;
	for (size_t k = 0; r == 0 && k < i->n_addresses; k++) {
		char text[NET_PREFIX_TEXT_MAX + 1];
		net_prefix_format(&i->addresses[k], text);
		r = json_append(list, json_object_new_string(text));
	}
	return r == 0 ? json_put(body, "addresses", list) : append(NULL, list, r);
}

static int put_routes(struct json_object *body, const struct net_interface *i)
{
	struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;
	for (size_t k = 0; r == 0 && k < i->n_routes; k++)
		r = append_route(list, &i->routes[k]);
	return r == 0 ? json_put(body, "routes", list) : append(NULL, list, r);
}

static int append_interface(struct json_object *list, const struct net_interface *i)
{
	char mac[NET_MAC_TEXT_MAX + 1];
	struct json_object *body = json_object_new_object();
	net_mac_format(i->mac, mac);
	int r = body ? json_put_str(body, "name", i->name) : -ENOMEM;
	if (r == 0)
		r = json_put_str(body, "mac", mac);
	if (r == 0)
		r = json_put_int(body, "mtu", i->mtu);
	if (r == 0)
		r = put_addresses(body, i);
	if (r == 0)
		r = put_routes(body, i);
	return append(list, body, r);
}

int net_encode(const struct net *n, struct json_object **ret)
{
	cleanup_json struct json_object *body = json_object_new_object();
	struct json_object *interfaces = json_object_new_array(), *rules;
	int r = body && interfaces ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < n->n_interfaces; i++)
		r = append_interface(interfaces, &n->interfaces[i]);
	r = r == 0 ? json_put(body, "interfaces", interfaces) : append(NULL, interfaces, r);
	if (r < 0)
		return r;
	rules = json_object_new_array();
	r = rules ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < n->n_rules; i++)
		r = append_rule(rules, &n->rules[i]);
	r = r == 0 ? json_put(body, "rules", rules) : append(NULL, rules, r);
	if (r == 0)
		*ret = TAKE_PTR(body);
	return r;
}

/* ---- reading ---- */

/* All of these: 0 or -EBADMSG; a member that is not there leaves *ret as it is. */

static int get_ip(struct json_object *body, const char *key, struct net_ip *ret)
{
	const char *text;
	int r = json_get_str(body, key, NET_IP_TEXT_MAX, &text);
	if (r == -ENOENT)
		return 0;
	return r < 0 || net_ip_parse(text, ret) < 0 ? -EBADMSG : 0;
}

static int get_prefix(struct json_object *body, const char *key, struct net_prefix *ret)
{
	const char *text;
	int r = json_get_str(body, key, NET_PREFIX_TEXT_MAX, &text);
	if (r == -ENOENT)
		return 0;
	return r < 0 || net_prefix_parse(text, ret) < 0 ? -EBADMSG : 0;
}

static int get_number(struct json_object *body, const char *key, uint32_t max, uint32_t *ret)
{
	int64_t value;
	int r = json_get_int(body, key, 0, max, &value);
	if (r == 0)
		*ret = (uint32_t)value;
	return r == -ENOENT ? 0 : r;
}

static int get_flag(struct json_object *body, const char *key, bool *ret)
{
	int r = json_get_bool(body, key, ret);
	return r == -ENOENT ? 0 : r;
}

static bool is_other_family(const struct net_ip *ip, int family)
{
	return ip->family != AF_UNSPEC && ip->family != family;
}

static int read_route(struct json_object *body, void *at)
{
	struct net_route *route = at;
	route->table = TABLE_MAIN;
	int r = get_prefix(body, "to", &route->to);
	if (r == 0)
		r = get_ip(body, "via", &route->via);
	if (r == 0)
		r = get_ip(body, "from", &route->from);
	if (r == 0)
		r = get_number(body, "table", UINT32_MAX, &route->table);
	if (r == 0)
		r = get_number(body, "metric", UINT32_MAX, &route->metric);
	if (r == 0)
		r = get_number(body, "mtu", NET_MTU_MAX, &route->mtu);
	if (r == 0)
		r = get_flag(body, "link", &route->link);
	if (r == 0)
		r = get_flag(body, "onlink", &route->onlink);
	int family = route->to.ip.family;
	if (r < 0 || family == AF_UNSPEC || is_other_family(&route->via, family) ||
	    is_other_family(&route->from, family))
		return -EBADMSG;
	return 0;
}

static int read_rule(struct json_object *body, void *at)
{
	struct net_rule *rule = at;
	int r = get_prefix(body, "from", &rule->from);
	if (r == 0)
		r = get_prefix(body, "to", &rule->to);
	if (r == 0)
		r = get_number(body, "table", UINT32_MAX, &rule->table);
	if (r == 0)
		r = get_number(body, "priority", UINT32_MAX, &rule->priority);
	if (r < 0 || rule->table == 0 ||
	    (rule->to.ip.family != AF_UNSPEC &&
	     is_other_family(&rule->from.ip, rule->to.ip.family)))
		return -EBADMSG;
	return 0;
}

static int read_address(struct json_object *body, void *at)
{
	if (!json_object_is_type(body, json_type_string) ||
	    json_object_get_string_len(body) != (int)strlen(json_object_get_string(body)))
		return -EBADMSG;
	return net_prefix_parse(json_object_get_string(body), at) < 0 ? -EBADMSG : 0;
}

struct list {
	const char *key;
	void *array;
	size_t size, max; /* of a member; of members */
	int (*read)(struct json_object *body, void *at);
};

/* Reads the members of a list, which may be missing, into zeroed memory. */
static int read_list(struct json_object *body, const struct list *l, size_t *ret_n)
{
	struct json_object *list = json_member(body, l->key);
	*ret_n = 0;
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) > l->max)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		int r = l->read(json_object_array_get_idx(list, i), (char *)l->array + i * l->size);
		if (r < 0)
			return r;
		(*ret_n)++;
	}
	return 0;
}

static int read_interface(struct json_object *body, void *at)
{
	struct net_interface *i = at;
	const struct list addresses = { "addresses", i->addresses, sizeof(i->addresses[0]),
					NET_ADDRESSES_MAX, read_address };
	const struct list routes = { "routes", i->routes, sizeof(i->routes[0]), NET_ROUTES_MAX,
				     read_route };
	const char *name, *mac;
	int64_t mtu;
	if (json_get_str(body, "name", NET_NAME_MAX, &name) < 0 || !net_name_is_valid(name) ||
	    str_copy(i->name, sizeof(i->name), name) < 0 ||
	    json_get_str(body, "mac", NET_MAC_TEXT_MAX, &mac) < 0 ||
	    net_mac_parse(mac, i->mac) < 0 ||
	    json_get_int(body, "mtu", NET_MTU_MIN, NET_MTU_MAX, &mtu) < 0)
		return -EBADMSG;
	i->mtu = (uint32_t)mtu;
	int r = read_list(body, &addresses, &i->n_addresses);
	return r == 0 ? read_list(body, &routes, &i->n_routes) : r;
}

static bool are_distinct(const struct net *n)
{
	for (size_t i = 0; i < n->n_interfaces; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(n->interfaces[i].name, n->interfaces[k].name) == 0)
				return false;
	return true;
}

int net_decode(struct json_object *body, struct net *ret)
{
	memset(ret, 0, sizeof(*ret));
	const struct list interfaces = { "interfaces", ret->interfaces, sizeof(ret->interfaces[0]),
					 NET_INTERFACES_MAX, read_interface };
	const struct list rules = { "rules", ret->rules, sizeof(ret->rules[0]), NET_RULES_MAX,
				    read_rule };
	if (!json_object_is_type(body, json_type_object))
		return -EBADMSG;
	int r = read_list(body, &interfaces, &ret->n_interfaces);
	if (r == 0)
		r = read_list(body, &rules, &ret->n_rules);
	return r == 0 && !are_distinct(ret) ? -EBADMSG : r;
}
