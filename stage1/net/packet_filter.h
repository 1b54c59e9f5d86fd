/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod may send on an interface: frames from its MAC address, with its own IP addresses. An
 * eBPF program for the classifier of tc(8), so that a frame that is not the pod's is dropped before
 * anything of the host looks into it. Of what goes to the pod at most the MAC address is
 * checked; no interface there takes addresses from routers (lib/net/configure.h): they would not be
 * in here.
 *
 * Let through are, from the MAC address of the interface alone:
 *  - ARP for Ethernet and IPv4 whose sender is the pod, or asks who has its address (RFC 5227);
 *  - IPv4 from its addresses; no servers of DHCP;
 *  - IPv6 from its addresses and the link-local one of its MAC address (RFC 4291, appendix A), and
 *    what duplicate address detection for them and MLD send; no router advertisements, redirects,
 *    MLD queries and servers of DHCPv6; neighbor advertisements for its own addresses only; of
 *    extension headers only those of fragments, and of MLD, so that nothing hides behind others
 *    (RFC 7113), nor in fragments (RFC 6980).
 * Anything else is dropped: VLAN tags, STP, LLDP and so on.
 *
 * Of what passes, broadcasts and multicasts are limited: each wakes every neighbour, which costs a
 * virtual machine more than whoever sends it.
 */
#ifndef STAGE1_NET_PACKET_FILTER_H
#define STAGE1_NET_PACKET_FILTER_H

#include <stdbool.h>

#include "lib/wire/net.h"

/*
 * Windows of 2^27 ns, and how many frames to many may be in one: 7,450 a second. That is room for a
 * /16 whose addresses are asked for in nine seconds, and for 80 Mbit/s of multicasts.
 */
#define PACKET_FILTER_WINDOW_BITS 27
#define PACKET_FILTER_TO_MANY_MAX 1000

/*
 * The program for @pod. @to: index of the interface to which frames that pass are redirected; 0:
 * they go on as they would. @with_dhcp: a client of DHCP is beside the pod, which sends before it
 * has an address. A descriptor of it, which the kernel has checked, or -errno.
 */
int packet_filter_load(const struct net_interface *pod, unsigned to, bool with_dhcp);

/*
 * A program for what an interface receives: it redirects to interface @to what is for it or for
 * many, and drops what a bridge shows to all since it knows no better. @with_dhcp: the answers to
 * that client are for both. In the same way.
 */
int packet_filter_load_redirect(unsigned to, bool with_dhcp);

#endif
