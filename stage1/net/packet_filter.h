/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod may send on an interface: frames from its MAC address, with its own IP addresses. An
 * eBPF program for the classifier of tc(8), so that a frame that is not the pod's is dropped before
 * anything of the host looks into it. Nothing is checked of what goes to the pod, where
 * no interface takes addresses from routers (lib/net/configure.h): they would not be in here.
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
 */
#ifndef STAGE1_NET_PACKET_FILTER_H
#define STAGE1_NET_PACKET_FILTER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/net.h"

/* 250 of frame and protocols; 8 for each of 17 addresses, four times; Linux takes 4096. */
#define PACKET_FILTER_INSNS_MAX 1024

/*
 * The program for @pod in @ret, of PACKET_FILTER_INSNS_MAX. @to: index of the interface to which
 * frames that pass are redirected; 0: they go on as they would. @with_dhcp: a client of DHCP is
 * beside the pod, which sends before it has an address. Pure. Returns the number of instructions.
 */
size_t packet_filter_program(const struct net_interface *pod, unsigned to, bool with_dhcp,
			     struct bpf_insn *ret);

/*
 * A program that redirects all frames to interface @to, in the same way. @with_dhcp: the answers to
 * that client are for both.
 */
size_t packet_filter_redirect(unsigned to, bool with_dhcp, struct bpf_insn *ret);

/* Has the kernel check the program. A descriptor of it, or -errno. */
int packet_filter_load(const struct bpf_insn *insns, size_t n);

#endif
