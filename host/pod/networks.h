/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of a pod, as its stage1 has written them down while it has them. */
#ifndef HOST_POD_NETWORKS_H
#define HOST_POD_NETWORKS_H

#include <stdbool.h>

#include "lib/wire/net_info.h"

/*
 * Reads them below the pod directory @pod_fd; the caller frees *ret, which is NULL if there are
 * none, or none that we may read. 0 or -ENOMEM.
 */
int pod_networks_read(int pod_fd, struct net_info_list **ret);

/*
 * Calls @fn with each address of @list, which may be NULL, without the length of its prefix:
 * network by network, of each IPv4 first. Another result of it than 0 ends that and is returned.
 */
int pod_networks_each_ip(const struct net_info_list *list,
			 int (*fn)(void *ctx, const char *net, bool is_ipv6, const char *ip),
			 void *ctx);

#endif
