/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1/net/packet_filter.h"
#include "stage1/net/traffic.h"

#define TUN   "/dev/net/tun"
#define VHOST "/dev/vhost-net"

/* The first queue makes the interface @name, a pattern until then; the others join it. */
static int open_queue(char name[IFNAMSIZ], size_t n_queues)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	cleanup_fd int fd = open(TUN, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (n_queues > 1)
		req.ifr_flags |= IFF_MULTI_QUEUE;
	memcpy(req.ifr_name, name, IFNAMSIZ);
	if (ioctl(fd, TUNSETIFF, &req) < 0)
		return -errno;
	memcpy(name, req.ifr_name, IFNAMSIZ);
	return TAKE_FD(fd);
}

static int open_vhost(void)
{
	int fd = open(VHOST, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -EBADF : fd;
}

static int open_queues(struct tap *t, size_t n, char name[IFNAMSIZ], struct err *e)
{
	for (size_t i = 0; i < TAP_QUEUES_MAX; i++)
		t->queues[i] = t->vhosts[i] = -EBADF;
	for (t->n_queues = 0; t->n_queues < n; t->n_queues++) {
		int fd = open_queue(name, n);
		if (fd < 0)
			return err_sys(e, fd, "\"" TUN "\": cannot make a tap (modprobe tun)");
		t->queues[t->n_queues] = fd;
		t->vhosts[t->n_queues] = open_vhost();
	}
	return 0;
}

/* The tap takes no part in the namespace's own traffic: no router solicitation, no address. */
static int silence(const char *name)
{
	char path[64 + IFNAMSIZ];
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* a kernel without IPv6 */
	return fd_write_all(fd, "1", 1);
}

static int bring_up(const char *name, uint32_t mtu)
{
	struct ifreq req = { .ifr_mtu = (int)mtu };
	cleanup_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	int r = silence(name);
	if (r < 0)
		return r;
	snprintf(req.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(sock, SIOCSIFMTU, &req) < 0 || ioctl(sock, SIOCGIFFLAGS, &req) < 0)
		return -errno;
	req.ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

/* As traffic_judge() of @pod. */
static int tie(const struct net_interface *pod, bool with_dhcp, const char *name, struct err *e)
{
	unsigned tap = if_nametoindex(name), own = if_nametoindex(pod->name);
	if (tap == 0 || own == 0)
		return err_sys(e, -errno, "interface \"%s\"", tap ? pod->name : name);
	cleanup_fd int from = packet_filter_load(pod, own, false);
	cleanup_fd int to = packet_filter_load_redirect(tap, with_dhcp);
	if (from < 0 || to < 0)
		return err_sys(
			e, from < 0 ? from : to,
			"interface \"%s\": its filter (the kernel needs CONFIG_BPF_SYSCALL, and a "
			"container that husk is in has to permit bpf)",
			pod->name);
	int r = traffic_judge(tap, name, TRAFFIC_IN, from, e);
	return r < 0 ? r : traffic_judge(own, pod->name, TRAFFIC_IN, to, e);
}

int tap_make(const struct net_interface *pod, size_t n_queues, bool with_dhcp, struct tap *ret,
	     struct err *e)
{
	struct tap t;
	char name[IFNAMSIZ] = "husk%d";
	int r = open_queues(&t, n_queues, name, e);
	if (r == 0 && (r = bring_up(name, pod->mtu)) < 0)
		err_sys(e, r, "tap \"%s\" of \"%s\"", name, pod->name);
	if (r == 0)
		r = tie(pod, with_dhcp, name, e);
	if (r < 0) {
		tap_close(&t);
		return r;
	}
	t.is_prepared = r > 0;
	*ret = t;
	return 0;
}

void tap_close(struct tap *t)
{
	for (size_t i = 0; i < t->n_queues; i++) {
		fd_close(t->queues[i]);
		fd_close(t->vhosts[i]);
	}
	t->n_queues = 0;
}
