/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/file.h"
#include "lib/wire/stage1.h"

#define INFO_MODE 0640

static void format_mask(int prefix_len, char *out, socklen_t size)
{
	struct in_addr mask = { htonl(prefix_len > 0 ? UINT32_MAX << (32 - prefix_len) : 0) };
	inet_ntop(AF_INET, &mask, out, size);
}

void info_choose_ip(struct net_info *info)
{
	for (size_t i = 0; i < info->n_ips; i++) {
		struct net_prefix p;
		if (net_prefix_parse(info->ips[i], &p) < 0)
			continue;
		if (i == 0 || p.ip.family == AF_INET)
			net_ip_format(&p.ip, info->ip);
		if (p.ip.family == AF_INET) {
			format_mask(p.len, info->mask, sizeof(info->mask));
			return;
		}
	}
}

void info_of_interfaces(const struct net *net, struct net_info_list *ret)
{
	ret->n = net->n_interfaces;
	for (size_t i = 0; i < net->n_interfaces; i++) {
		const struct net_interface *from = &net->interfaces[i];
		struct net_info *info = &ret->nets[i];
		*info = (struct net_info){ .n_ips = from->n_addresses };
		memcpy(info->net_name, from->name, sizeof(from->name));
		memcpy(info->if_name, from->name, sizeof(from->name));
		net_mac_format(from->mac, info->mac);
		for (size_t j = 0; j < from->n_addresses; j++)
			net_prefix_format(&from->addresses[j], info->ips[j]);
		info_choose_ip(info);
	}
}

int info_write(int pod_fd, const struct net_info_list *list, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, NET_INFO_FILE_MAX);
	int r = net_info_format(list, &text);
	if (r == 0)
		r = file_replace_at(pod_fd, POD_FILE_NET_INFO, buf_data(&text), buf_len(&text),
				    INFO_MODE);
	return r < 0 ? err_sys(e, r, "cannot write the pod's file \"" POD_FILE_NET_INFO "\"") : 0;
}

int info_remove(int pod_fd, struct err *e)
{
	if (unlinkat(pod_fd, POD_FILE_NET_INFO, 0) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "cannot remove the pod's file \"" POD_FILE_NET_INFO "\"");
	return 0;
}
