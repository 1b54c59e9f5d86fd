/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/route.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/os/fd.h"

/* A host of the world: any will do, as connect(2) of a datagram socket sends nothing to it. */
#define WORLD  "198.41.0.4"
#define WORLD6 "2001:503:ba3e::2:30"

bool route_to_world(int family)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;
	memset(&to, 0, sizeof(to));
	to.any.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		to.v4.sin_port = htons(53);
		inet_pton(AF_INET, WORLD, &to.v4.sin_addr);
	} else {
		to.v6.sin6_port = htons(53);
		inet_pton(AF_INET6, WORLD6, &to.v6.sin6_addr);
	}
	cleanup_fd int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, &to.any, sizeof(to)) == 0;
}
