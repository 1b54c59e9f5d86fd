/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of an interface of a pod, where the pod cannot reach: veth(4). */
#ifndef STAGE1_NET_VETH_H
#define STAGE1_NET_VETH_H

#include "lib/base/err.h"

/*
 * Finds the other end of the interface @name of the network namespace @netns in the namespace that
 * the caller is in. Its index; 0 if @name is no veth, or its other end is elsewhere; or -errno and
 * @e.
 */
int veth_find_peer(int netns, const char *name, struct err *e);

#endif
