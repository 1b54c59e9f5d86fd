/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the apps of a pod look names up: the texts of resolv.conf(5) and hosts(5), and what they are
 * made of. Sans-IO.
 */
#ifndef LIB_WIRE_NET_NAMES_H
#define LIB_WIRE_NET_NAMES_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/str.h"

#define NET_DNS_LIST_MAX    16  /* of each kind; resolv.conf(5) uses 3 name servers, 6 domains */
#define NET_DNS_NAME_MAX    253 /* bytes of a domain name as text (RFC 1035) */
#define NET_HOSTS_MAX       64  /* entries beside those of the pod itself */
#define NET_RESOLV_CONF_MAX ((size_t)16384) /* bytes; all lists full take less */
#define NET_HOSTS_TEXT_MAX  ((size_t)65536) /* bytes; a host's own file may be given */

/* What CNI calls "dns" (CNI specification 1.0.0, "ADD Success"). */
struct net_dns {
	struct strv nameservers; /* IP addresses */
	struct strv search, options;
	char domain[NET_DNS_NAME_MAX + 1]; /* "": none */
};

/* Nothing is said, and lists are ready to be filled; what frees them. Freeing accepts NULL. */
void net_dns_init(struct net_dns *d);
void net_dns_deinit(struct net_dns *d);

/* Adds copies of all of @from to the empty @d. 0 or -ENOMEM. */
int net_dns_copy(struct net_dns *d, const struct net_dns *from);

/* Nothing is said. */
bool net_dns_is_empty(const struct net_dns *d);

/*
 * Takes over what is at the JSON object @body: members "nameservers", "search", "options",
 * "domain", all of which may be missing; lists are added to. 0, -ENOMEM, or -EBADMSG for a name
 * server that is no IP address, a word with a blank or control character, or one beyond a limit.
 */
int net_dns_decode(struct json_object *body, struct net_dns *d);

/* The same as JSON; empty members are left out. 0, -ENOMEM, -EILSEQ. */
int net_dns_encode(const struct net_dns *d, struct json_object **ret);

/* True if @s is a word that resolv.conf(5) can have: printable ASCII without blanks, not empty. */
bool net_dns_word_is_valid(const char *s);

/* Appends the text of resolv.conf(5). 0 or -ENOMEM. */
int net_dns_format(const struct net_dns *d, struct buf *out);

/*
 * Appends the text of hosts(5) for a pod called @hostname, and the @entries, "IP=NAME[ NAME...]".
 * 0 or -ENOMEM.
 */
int net_hosts_format(const char *hostname, const struct strv *entries, struct buf *out);

/*
 * Appends to @text, somebody's hosts(5) of whatever bytes, what makes "localhost" and @hostname
 * known, as far as it does not name them. 0 or -ENOMEM.
 */
int net_hosts_complete(const char *hostname, struct buf *text);

#endif
