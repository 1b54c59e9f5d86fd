/* SPDX-License-Identifier: Apache-2.0 */
/* The loopback interface of a network namespace, which is down when that is made. */
#ifndef LIB_OS_LOOPBACK_H
#define LIB_OS_LOOPBACK_H

/*
 * Brings it up in the namespace that the caller is in. Who may not (CAP_NET_ADMIN) does not fail
 * where it is up already. 0 or -errno.
 */
int loopback_up(void);

#endif
