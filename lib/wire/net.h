/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a pod as values: what an interface looks like from inside, read from a network
 * namespace, sent to husk-agent, and compared with what packets may say.
 *
 * Sans-IO: structures to JSON and back. Addresses are in network byte order; JSON has them as
 * inet_ntop(3) writes them, prefixes as "ADDRESS/LENGTH".
 */
#ifndef LIB_WIRE_NET_H
#define LIB_WIRE_NET_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_NAME_MAX       15 /* bytes of an interface's name: IFNAMSIZ without the NUL */
#define NET_MAC_LEN        6
#define NET_INTERFACES_MAX 6  /* of a pod, without lo: microvm has 8 slots for devices, 2 in use */
#define NET_ADDRESSES_MAX  16 /* of an interface */
#define NET_ROUTES_MAX     64 /* of an interface: those of a plugin, not of a router */
#define NET_RULES_MAX      32 /* of a pod, beside those of the kernel */
#define NET_MTU_MIN        68 /* RFC 791 */
#define NET_MTU_MAX        65535 /* of an IPv4 packet */

struct net_ip {
	int family; /* AF_INET, AF_INET6; AF_UNSPEC: none */
	unsigned char bytes[16];
};

struct net_prefix {
	struct net_ip ip;
	int len; /* 0 to 32, or 128 */
};

struct net_route {
	struct net_prefix to;
	struct net_ip via, from; /* gateway, preferred source; AF_UNSPEC: none */
	uint32_t table, metric;
	uint32_t mtu; /* 0: the interface's */
	bool link;    /* scope link: the destination is on the link */
	bool onlink;  /* the gateway is, whatever other routes say */
};

struct net_rule {
	struct net_prefix from, to; /* AF_UNSPEC: any */
	uint32_t table, priority;
};

struct net_interface {
	char name[NET_NAME_MAX + 1]; /* see net_name_is_valid() */
	unsigned char mac[NET_MAC_LEN];
	uint32_t mtu;
	struct net_prefix addresses[NET_ADDRESSES_MAX];
	size_t n_addresses;
	struct net_route routes[NET_ROUTES_MAX]; /* in an order in which they can be added */
	size_t n_routes;
};

struct net {
	struct net_interface interfaces[NET_INTERFACES_MAX];
	size_t n_interfaces;
	struct net_rule rules[NET_RULES_MAX];
	size_t n_rules;
};

/* "192.0.2.1", "2001:db8::1". 0 or -EINVAL. */
int net_ip_parse(const char *s, struct net_ip *ret);

/* "192.0.2.0/24"; host bits may be set. Without a length: that of one address. 0 or -EINVAL. */
int net_prefix_parse(const char *s, struct net_prefix *ret);

/* "02:00:5e:00:53:01" of a single host. 0 or -EINVAL. */
int net_mac_parse(const char *s, unsigned char ret[NET_MAC_LEN]);

#define NET_IP_TEXT_MAX     45 /* INET6_ADDRSTRLEN without the NUL */
#define NET_PREFIX_TEXT_MAX (NET_IP_TEXT_MAX + 4)
#define NET_MAC_TEXT_MAX    17

/* The other way; of an address that is AF_UNSPEC: "". */
void net_ip_format(const struct net_ip *ip, char out[NET_IP_TEXT_MAX + 1]);

/* As above, with the length. */
void net_prefix_format(const struct net_prefix *p, char out[NET_PREFIX_TEXT_MAX + 1]);

/* As net_mac_parse() takes it. */
void net_mac_format(const unsigned char mac[NET_MAC_LEN], char out[NET_MAC_TEXT_MAX + 1]);

/*
 * 1 to NET_NAME_MAX printable bytes without blank, '/', ':', and not "." or ".." (dev_valid_name).
 */
bool net_name_is_valid(const char *s);

/* A new JSON object in *ret. 0 or -ENOMEM. */
int net_encode(const struct net *n, struct json_object **ret);

/*
 * Fills *ret, which then is within all limits above. 0, or -EBADMSG for a missing, mistyped or
 * oversized field, addresses of mixed families in one route, two interfaces of one name.
 */
int net_decode(struct json_object *body, struct net *ret);

#endif
