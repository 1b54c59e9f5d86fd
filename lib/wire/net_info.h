/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What everybody may know about the networks of a pod: the file "net-info.json" of its directory,
 * written by stage1, read by stage0. A list of objects, as rkt's file of that name has them
 * (netName, netConf, pluginPath, ifName, ip, args, mask), and two members of our own (ips, mac).
 *
 * Sans-IO. Addresses are texts that inet_pton(3) takes; all texts are UTF-8 without anything that
 * would steer a terminal.
 */
#ifndef LIB_WIRE_NET_INFO_H
#define LIB_WIRE_NET_INFO_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/wire/net.h"

#define NET_INFO_NAME_MAX 255 /* NAME_MAX: the plugin host-local makes a directory of it */
#define NET_INFO_TEXT_MAX \
	1023 /* bytes of a path or of arguments; longer ones are refused earlier */
/*
 * Of the file: NET_INTERFACES_MAX times three texts of which each byte may be escaped, a name, 16
 * addresses and 200 bytes for keys is less than 60 KiB.
 */
#define NET_INFO_FILE_MAX ((size_t)64 * 1024)

/* A network that the pod is attached to. Texts that are not known are empty. */
struct net_info {
	char net_name[NET_INFO_NAME_MAX + 1];
	char net_conf[NET_INFO_TEXT_MAX + 1];    /* path of its configuration; empty: built in */
	char plugin_path[NET_INFO_TEXT_MAX + 1]; /* of its first plugin */
	char args[NET_INFO_TEXT_MAX + 1];        /* as after "--net=NAME:" */
	char if_name[NET_NAME_MAX + 1];          /* in the pod: "eth0" */
	char ip[NET_IP_TEXT_MAX + 1];            /* its first address, IPv4 if there is one */
	char mask[NET_IP_TEXT_MAX + 1];          /* of @ip if that is IPv4: "255.255.255.0" */
	char ips[NET_ADDRESSES_MAX][NET_PREFIX_TEXT_MAX + 1]; /* all: "172.16.28.2/24" */
	size_t n_ips;
	char mac[NET_MAC_TEXT_MAX + 1];
};

/* Some 35 KiB: rather on the heap than on a deep stack. */
struct net_info_list {
	struct net_info nets[NET_INTERFACES_MAX]; /* in the order of their interfaces */
	size_t n;
};

/*
 * Appends the file's content to @out. 0; -EINVAL if net_info_parse() would refuse it; errors as
 * buf_append().
 */
int net_info_format(const struct net_info_list *list, struct buf *out);

/*
 * Fills *ret, which is then within its limits, from the file's content. Members that are missing
 * are empty, but for netName and ifName; what is not known is passed over. 0; -EBADMSG (also beyond
 * NET_INFO_FILE_MAX), -ENOMEM.
 */
int net_info_parse(const char *text, size_t len, struct net_info_list *ret);

#endif
