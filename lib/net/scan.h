/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how the interfaces of a network namespace are configured. */
#ifndef LIB_NET_SCAN_H
#define LIB_NET_SCAN_H

#include "lib/base/err.h"
#include "lib/wire/net.h"

/*
 * Reads all Ethernet interfaces that are up of the namespace that the caller is in, in the order of
 * their indices: their addresses but link-local ones of IPv6, and what routes and rules somebody
 * has made, in an order in which they can be made again. 0, -E2BIG if there is more than
 * lib/wire/net.h has room for, or -errno, with @e.
 */
int net_scan(struct net *ret, struct err *e);

#endif
