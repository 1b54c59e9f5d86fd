/* SPDX-License-Identifier: Apache-2.0 */
/* What a network namespace has not got when it is made. */
#ifndef LIB_OS_LOOPBACK_H
#define LIB_OS_LOOPBACK_H

/*
 * Brings it up in the namespace that the caller is in. Who may not (CAP_NET_ADMIN) does not fail
 * where it is up already. 0 or -errno.
 */
int loopback_up(void);

/*
 * Lets every user bind the ports below 1024 there, as other container runtimes do: a pod's ports
 * are the pod's own. To be called in a namespace that is. 0 or -errno.
 */
int low_ports_open(void);

#endif
