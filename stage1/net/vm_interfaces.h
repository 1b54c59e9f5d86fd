/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a VM can have the interfaces of a namespace as its own. */
#ifndef STAGE1_NET_VM_INTERFACES_H
#define STAGE1_NET_VM_INTERFACES_H

#include "lib/base/err.h"
#include "lib/wire/net.h"
#include "lib/wire/net_info.h"

/*
 * In the namespace of which @net was read, where plugins have made @made (of somebody else's:
 * nothing). -EOPNOTSUPP and @e, which names the networks, if two interfaces have one MAC address,
 * or one does without ARP, or is not of Ethernet.
 */
int vm_interfaces_check(const struct net *net, const struct net_info_list *made, struct err *e);

#endif
