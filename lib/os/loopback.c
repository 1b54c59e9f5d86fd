/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"

int loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* any will do */
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0)
		return -errno;
	if (req.ifr_flags & IFF_UP)
		return 0;
	req.ifr_flags = (short)(req.ifr_flags | IFF_UP);
	return ioctl(fd, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

int low_ports_open(void)
{
	static const char path[] = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;
}
