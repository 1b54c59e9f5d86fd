/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/net/duplex.h"
#include "lib/os/fd.h"

struct ports {
	struct loop *loop;
	struct duplex v[AGENT_CONNECTIONS_MAX];
};

struct ports *ports_new(struct loop *loop)
{
	struct ports *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->loop = loop;
	for (size_t i = 0; i < ARRAY_SIZE(p->v); i++)
		p->v[i] = DUPLEX_INIT;
	return p;
}

void ports_free(struct ports *p)
{
	for (size_t i = 0; p && i < ARRAY_SIZE(p->v); i++)
		duplex_stop(&p->v[i]);
	free(p);
}

/* On a loopback the answer is there when connect(2) is back, unless who listens is too busy. */
static int connect_to(const struct sockaddr *to, socklen_t len)
{
	cleanup_fd int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, to, len) < 0 && errno != EINPROGRESS)
		return -errno;
	struct pollfd p = { fd, POLLOUT, 0 };
	int error = 0;
	socklen_t size = sizeof(error);
	if (poll(&p, 1, 0) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return error ? -error : TAKE_FD(fd);
}

static struct duplex *find_free(struct ports *p, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->v); i++)
		if (!p->v[i].loop)
			return &p->v[i];
	fault_set(f, AGENT_E_LIMIT, "%d connections are open", AGENT_CONNECTIONS_MAX);
	return NULL;
}

int ports_connect(struct ports *p, int64_t port, int *ret_fd, struct fault *f)
{
	const in_port_t number = htons((uint16_t)port);
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
					.sin_addr = { htonl(INADDR_LOOPBACK) },
					.sin_port = number };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT,
					 .sin6_port = number };
	if (!find_free(p, f))
		return FAULT_SET;
	int fd = connect_to((const struct sockaddr *)&v4, sizeof(v4));
	int r = fd;
	if (fd < 0)
		fd = connect_to((const struct sockaddr *)&v6, sizeof(v6));
	if (fd < 0)
		return fault_sys(f, AGENT_E_STATE, r, "port %d of the pod", (int)port);
	*ret_fd = fd;
	return 0;
}

static void on_end(void *ctx, int error)
{
	(void)ctx;
	(void)error; /* both sides know by the way in which they were ended */
}

int ports_attach(struct ports *p, int fd, int sock, struct fault *f)
{
	cleanup_fd int inside = fd, outside = sock;
	struct duplex *d = find_free(p, f);
	if (!d)
		return FAULT_SET;
	int r = duplex_start(d, p->loop, TAKE_FD(outside), TAKE_FD(inside), on_end, NULL);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "connection") : 0;
}
