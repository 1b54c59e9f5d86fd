/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How apps look names up: what the user says, the pod's network, or the host, in this order.
 */
#ifndef STAGE1_SUPERVISE_NAMES_H
#define STAGE1_SUPERVISE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/net_names.h"

/* What the user asked for. */
struct names_options {
	struct strv servers; /* IP addresses, or one of "host" and "none" alone */
	struct strv search, options;
	const char *domain; /* NULL: none */
	struct strv hosts;  /* "IP=NAME", or one "host" */
};

/* Nothing is asked for; what frees the lists. */
void names_options_init(struct names_options *o);
void names_options_deinit(struct names_options *o);

/* Whether the user names name servers. */
bool names_has_servers(const struct names_options *o);

/* Which of the host's resolvers a pod can reach. */
enum names_reach {
	NAMES_REACH_NONE,
	NAMES_REACH_OTHERS, /* those that are not the host itself: a default route leads there */
	NAMES_REACH_ALL,    /* the pod is in the host's network */
};

/*
 * The text of resolv.conf(5) for apps in *ret, owned: NULL if theirs is left as it is. @of_network:
 * what the pod's network says. 0, or -errno and @e.
 */
int names_resolv_conf(const struct names_options *o, const struct net_dns *of_network,
		      enum names_reach reach, char **ret, struct err *e);

/* The same of hosts(5). */
int names_hosts(const struct names_options *o, const char *hostname, char **ret, struct err *e);

/*
 * Appends the host's resolv.conf(5) @text to @out, without name servers that only the host can
 * reach, which are loopback and link-local ones. Pure. 1 if a name server is left, 0 if none is, or
 * -ENOMEM.
 */
int names_filter(const char *text, size_t len, struct buf *out);

#endif
