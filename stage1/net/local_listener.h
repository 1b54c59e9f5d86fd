/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connects to 127.0.0.0/8 in a network namespace that leads to a VM, on whatever port: who
 * listens for it is in the machine. Kubernetes forwards ports that way.
 *
 * One socket gets all of them: an eBPF program, which the kernel asks for the socket of each new
 * TCP connection in that namespace (BPF_PROG_TYPE_SK_LOOKUP, of Linux 5.9), names it for those to
 * the loopback. getsockname(2) of an accepted one says which port is meant. The program is asked
 * before the kernel looks for sockets itself, and has no way to do that, so it goes before whatever
 * listens in that namespace on the host. Nothing from outside comes there: what arrives at an
 * interface is led to the VM before the host's own IP sees it (tap.h).
 */
#ifndef STAGE1_NET_LOCAL_LISTENER_H
#define STAGE1_NET_LOCAL_LISTENER_H

#include "lib/base/err.h"

#define LOCAL_LISTENER_BACKLOG 64 /* that wait while the supervisor serves others */

/*
 * Has that socket made in the namespace @netns. *ret_socket listens, non-blocking; *ret_link holds
 * the program there until it is closed. Both are the caller's. 0, or -errno and @e.
 */
int local_listener_make(int netns, int *ret_socket, int *ret_link, struct err *e);

#endif
