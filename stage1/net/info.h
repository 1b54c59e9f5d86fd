/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's file that says what it is connected to: lib/wire/net_info.h. */
#ifndef STAGE1_NET_INFO_H
#define STAGE1_NET_INFO_H

#include "lib/base/err.h"
#include "lib/wire/net.h"
#include "lib/wire/net_info.h"

/*
 * Makes the first address of @info, or the first of IPv4 if there is one, the one that stands for
 * it.
 */
void info_choose_ip(struct net_info *info);

/* Describes interfaces that nothing but @net is known of; the names of networks are theirs. */
void info_of_interfaces(const struct net *net, struct net_info_list *ret);

/* Writes the file, or removes it, in the pod's directory. 0 or -errno, with @e. */
int info_write(int pod_fd, const struct net_info_list *list, struct err *e);
int info_remove(int pod_fd, struct err *e);

#endif
