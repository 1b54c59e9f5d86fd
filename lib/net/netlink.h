/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading and configuring interfaces share: a socket of rtnetlink(7) in the network namespace
 * that the caller is in, addresses as libnl has them and as lib/wire/net.h does.
 */
#ifndef LIB_NET_NETLINK_H
#define LIB_NET_NETLINK_H

#include "lib/base/err.h"
#include "lib/base/macros.h"
#include "lib/wire/net.h"

struct nl_addr;
struct nl_cache;
struct nl_sock;

/* For the macros below. */
void netlink_cleanup_socket(struct nl_sock **s);
void netlink_cleanup_cache(struct nl_cache **c);
void netlink_cleanup_addr(struct nl_addr **a);

/* Declares a pointer whose object is freed at the end of its scope. */
#define cleanup_nl_socket CLEANUP(netlink_cleanup_socket)
#define cleanup_nl_cache  CLEANUP(netlink_cleanup_cache)
#define cleanup_nl_addr   CLEANUP(netlink_cleanup_addr)

/* A connected socket, or NULL and @e. */
struct nl_sock *netlink_open(struct err *e);

/* Fills @e: "WHAT: what libnl says". Returns -EIO. */
int netlink_failed(int nl_error, const char *what, struct err *e);

/* The address @a, without its length; AF_UNSPEC for NULL and families other than the two of IP. */
struct net_ip netlink_ip(const struct nl_addr *a);

/* With its length. */
struct net_prefix netlink_prefix(const struct nl_addr *a);

/* The other way. NULL if memory is short. */
struct nl_addr *netlink_addr(const struct net_ip *ip, int len);

#endif
