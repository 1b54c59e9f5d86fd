/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/networks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/file.h"
#include "lib/wire/stage1.h"

int pod_networks_read(int pod_fd, struct net_info_list **ret)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	*ret = NULL;
	int r = file_read_at(pod_fd, POD_FILE_NET_INFO, NET_INFO_FILE_MAX, &text, &len);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	cleanup_free struct net_info_list *list = calloc(1, sizeof(*list));
	r = list ? net_info_parse(text, len, list) : -ENOMEM;
	if (r == 0 && list->n > 0)
		*ret = TAKE_PTR(list);
	return r == -ENOMEM ? r : 0;
}

/* The addresses of one family. */
static int each_of(const struct net_info *net, bool is_ipv6,
		   int (*fn)(void *ctx, const char *net, bool is_ipv6, const char *ip), void *ctx)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < net->n_ips; i++) {
		char ip[NET_PREFIX_TEXT_MAX + 1];
		memcpy(ip, net->ips[i], sizeof(ip));
		ip[strcspn(ip, "/")] = '\0';
		if ((strchr(ip, ':') != NULL) == is_ipv6)
			r = fn(ctx, net->net_name, is_ipv6, ip);
	}
	if (net->n_ips == 0 && net->ip[0] && (strchr(net->ip, ':') != NULL) == is_ipv6)
		r = fn(ctx, net->net_name, is_ipv6, net->ip); /* all that rkt writes */
	return r;
}

int pod_networks_each_ip(const struct net_info_list *list,
			 int (*fn)(void *ctx, const char *net, bool is_ipv6, const char *ip),
			 void *ctx)
{
	int r = 0;
	for (size_t i = 0; r == 0 && list && i < list->n; i++) {
		r = each_of(&list->nets[i], false, fn, ctx);
		if (r == 0)
			r = each_of(&list->nets[i], true, fn, ctx);
	}
	return r;
}
