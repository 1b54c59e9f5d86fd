/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of the host that are a pod's: taken by sockets that nobody reads, so that a port has one
 * user, who else asks for it is told so, and the kernel hands it out to nobody. Plugins lead what
 * comes for the port to the pod before it would reach the socket.
 */
#ifndef STAGE1_NET_HOST_PORTS_H
#define STAGE1_NET_HOST_PORTS_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/net.h"

/*
 * Takes @port (not 0) of @ip, of all addresses if its family is AF_UNSPEC, for the protocol
 * @protocol (IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP), as long as *ret is open; *ret_other is one
 * more for IPv6, or -EBADF. 0, or -errno and @e.
 */
int host_port_take(int protocol, const struct net_ip *ip, uint16_t port, int *ret, int *ret_other,
		   struct err *e);

#endif
