/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/vm_interfaces.h"

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/os/fd.h"

#define REMEDY "(give --stage1=ns, or another network)"

/* interface "eth0" of network "lan" */
struct label {
	char text[NET_NAME_MAX + NET_INFO_NAME_MAX + 32];
};

static struct label label(const struct net_info_list *made, const char *if_name)
{
	struct label l;
	int n = snprintf(l.text, sizeof(l.text), "interface \"%s\"", if_name);
	for (size_t i = 0; i < made->n; i++)
		if (strcmp(made->nets[i].if_name, if_name) == 0)
			snprintf(l.text + n, sizeof(l.text) - (size_t)n, " of network \"%s\"",
				 made->nets[i].net_name);
	return l;
}

/* The agent finds its devices by their addresses (lib/net/configure.h). */
static int check_macs(const struct net *net, const struct net_info_list *made, struct err *e)
{
	for (size_t i = 0; i < net->n_interfaces; i++)
		for (size_t k = 0; k < i; k++) {
			const struct net_interface *a = &net->interfaces[k];
			const struct net_interface *b = &net->interfaces[i];
			if (memcmp(a->mac, b->mac, NET_MAC_LEN) != 0)
				continue;
			return err_set(e, -EOPNOTSUPP,
				       "%s and %s have the same MAC address, by which a VM tells "
				       "them apart " REMEDY,
				       label(made, a->name).text, label(made, b->name).text);
		}
	return 0;
}

/* What has no ARP is not asked for its MAC address, and the guest would ask in vain for others'. */
static int check_arp(const struct net *net, const struct net_info_list *made, struct err *e)
{
	cleanup_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (size_t i = 0; i < net->n_interfaces; i++) {
		const char *name = net->interfaces[i].name;
		struct ifreq req = { 0 };
		snprintf(req.ifr_name, IFNAMSIZ, "%s", name);
		if (ioctl(sock, SIOCGIFFLAGS, &req) < 0)
			return err_sys(e, -errno, "%s", label(made, name).text);
		if (req.ifr_flags & IFF_NOARP)
			return err_set(e, -EOPNOTSUPP,
				       "%s has no ARP, as of ipvlan in mode l3 or l3s, without "
				       "which a VM reaches nobody " REMEDY,
				       label(made, name).text);
	}
	return 0;
}

static bool has_interface(const struct net *net, const char *name)
{
	for (size_t i = 0; i < net->n_interfaces; i++)
		if (strcmp(net->interfaces[i].name, name) == 0)
			return true;
	return false;
}

/* Of a plugin that makes no interface, or a device of another kind, nothing is expected. */
static int check_kinds(const struct net *net, const struct net_info_list *made, struct err *e)
{
	for (size_t i = 0; i < made->n; i++) {
		const char *name = made->nets[i].if_name;
		if (if_nametoindex(name) != 0 && !has_interface(net, name))
			return err_set(e, -EOPNOTSUPP,
				       "%s is down, or not of Ethernet, as of tun, and a VM cannot "
				       "have it " REMEDY,
				       label(made, name).text);
	}
	return 0;
}

int vm_interfaces_check(const struct net *net, const struct net_info_list *made, struct err *e)
{
	int r = check_macs(net, made, e);
	if (r == 0)
		r = check_arp(net, made, e);
	return r == 0 ? check_kinds(net, made, e) : r;
}
