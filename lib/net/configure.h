/* SPDX-License-Identifier: Apache-2.0 */
/* Configures the interfaces of a network namespace. */
#ifndef LIB_NET_CONFIGURE_H
#define LIB_NET_CONFIGURE_H

#include "lib/base/err.h"
#include "lib/wire/net.h"

/*
 * Gives the interfaces of the namespace that the caller is in, which are found by their MAC
 * addresses, the names, addresses and routes of @n, and makes its rules. They get no others: see
 * net_ignore_routers(). 0, or -errno and @e, which names the interface; what was done before is not
 * undone.
 */
int net_configure(const struct net *n, struct err *e);

/*
 * Has the interface @name, or with "default" those that are still to come, in the network namespace
 * that the caller is in take neither addresses nor routes from routers' advertisements (RFC 4862):
 * what filters the pod's frames knows of none. 0, also without IPv6, or -errno and @e.
 */
int net_ignore_routers(const char *name, struct err *e);

/*
 * Lets all groups of users send ICMP echoes without privileges in the network namespace of the
 * calling thread (net.ipv4.ping_group_range; for IPv6, too), as other runtimes do. Best effort: 0,
 * or -errno where /proc cannot be written.
 */
int net_allow_ping(void);

#endif
