/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/host_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/os/fd.h"

/* A socket that has @port of @ip, whose family is one of the two. Or -errno. */
static int take(int protocol, const struct net_ip *ip, uint16_t port)
{
	const int on = 1;
	struct sockaddr_storage at = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&at;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&at;
	bool is_v6 = ip->family == AF_INET6;
	int type = protocol == IPPROTO_UDP ? SOCK_DGRAM : SOCK_STREAM;
	cleanup_fd int fd = socket(ip->family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	at.ss_family = (sa_family_t)ip->family;
	if (is_v6) {
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, ip->bytes, sizeof(v6->sin6_addr));
		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
			return -errno;
	} else {
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, ip->bytes, sizeof(v4->sin_addr));
	}
	if (bind(fd, (struct sockaddr *)&at, is_v6 ? sizeof(*v6) : sizeof(*v4)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Whose kernel does not have the protocol has nobody who could take its ports. */
static bool is_absent(int r)
{
	return r == -EAFNOSUPPORT || r == -EPROTONOSUPPORT || r == -ESOCKTNOSUPPORT ||
	       r == -EADDRNOTAVAIL;
}

static int fail(int r, uint16_t port, struct err *e)
{
	if (r == -EADDRINUSE)
		return err_set(e, r,
			       "port %u of the host is in use, or was within the last minute "
			       "(choose another with --port)",
			       port);
	return err_sys(e, r, "port %u of the host", port);
}

int host_port_take(int protocol, const struct net_ip *ip, uint16_t port, int *ret, int *ret_other,
		   struct err *e)
{
	const struct net_ip any = { .family = AF_INET }, any6 = { .family = AF_INET6 };
	bool all = ip->family == AF_UNSPEC;
	cleanup_fd int fd = take(protocol, all ? &any : ip, port);
	if (fd < 0 && (fd == -EADDRNOTAVAIL || !is_absent(fd)))
		return fail(fd, port, e);
	cleanup_fd int other = all ? take(protocol, &any6, port) : -EBADF;
	if (other < 0 && other != -EBADF && !is_absent(other))
		return fail(other, port, e);
	*ret = fd < 0 ? -EBADF : TAKE_FD(fd);
	*ret_other = other < 0 ? -EBADF : TAKE_FD(other);
	return 0;
}
