/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/network.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define CHUNK_SIZE ((size_t)64 << 10)

/* How often a service that is to come is asked for. */
#define RETRY_MS 10

#define WITHIN(n) ((n) % 64 != 63) /* a look at signals costs a system call */

/* The signal stays: the next command sees it, too. */
static bool is_interrupted(const struct network_client *n, int wait_ms)
{
	struct pollfd signals = { n->runner->signal_fd, POLLIN, 0 };
	return n->runner->interrupted || poll(&signals, 1, wait_ms) > 0;
}

static int interrupted(struct err *e)
{
	return err_set(e, -EINTR, "interrupted");
}

static double seconds_since(int64_t start)
{
	return (double)(clock_monotonic_ns() - start) / (double)NS_PER_SEC;
}

struct address {
	struct sockaddr_storage to;
	socklen_t len;
};

static int address_of(const struct network_client *n, unsigned port, struct address *ret,
		      struct err *e)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char service[16];
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(n->ip, service, &hints, &found) != 0)
		return err_set(e, -EINVAL, "\"%s\" is no IP address", n->ip);
	memcpy(&ret->to, found->ai_addr, found->ai_addrlen);
	ret->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int make_socket(void *ctx)
{
	const struct address *a = ctx;
	int fd = socket(a->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* A socket belongs to the network namespace in which it is made. */
static int connect_once(const struct network_client *n, struct address *a)
{
	const struct timeval limit = { .tv_sec = NETWORK_LIMIT_S };
	const int on = 1;
	cleanup_fd int fd = n->from ? namespaces_call(n->from, make_socket, a) : make_socket(a);
	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    connect(fd, (const struct sockaddr *)&a->to, a->len) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Waits for the service. A descriptor, or -errno and @e. */
static int connect_to(const struct network_client *n, unsigned port, struct err *e)
{
	struct address a;
	int64_t start = clock_monotonic_ns();
	int r = address_of(n, port, &a, e);
	if (r < 0)
		return r;
	while ((r = connect_once(n, &a)) < 0) {
		if ((r != -ECONNREFUSED && r != -EHOSTUNREACH) ||
		    seconds_since(start) > NETWORK_LIMIT_S)
			return err_sys(e, r, "port %u of the pod", port);
		if (is_interrupted(n, RETRY_MS))
			return interrupted(e);
	}
	return r;
}

/* Reads, whoever reads it, up to the end of the connection. */
static int drain(const struct network_client *n, int fd, uint64_t *ret_bytes, struct err *e)
{
	static char chunk[CHUNK_SIZE];
	ssize_t len;
	*ret_bytes = 0;
	for (unsigned i = 0; (len = read(fd, chunk, sizeof(chunk))) > 0; i++) {
		*ret_bytes += (uint64_t)len;
		if (!WITHIN(i) && is_interrupted(n, 0))
			return interrupted(e);
	}
	return len < 0 ? err_sys(e, -errno, "from the pod") : 0;
}

int network_send(const struct network_client *n, unsigned port, uint64_t bytes, double *ret_s,
		 struct err *e)
{
	static const char zeros[CHUNK_SIZE];
	uint64_t came;
	cleanup_fd int fd = connect_to(n, port, e);
	if (fd < 0)
		return fd;
	int64_t start = clock_monotonic_ns();
	for (unsigned i = 0; bytes > 0; i++) {
		ssize_t len = send(fd, zeros, MIN(bytes, sizeof(zeros)), MSG_NOSIGNAL);
		if (len < 0)
			return err_sys(e, -errno, "to the pod");
		bytes -= (uint64_t)len;
		if (!WITHIN(i) && is_interrupted(n, 0))
			return interrupted(e);
	}
	shutdown(fd, SHUT_WR);
	int r = drain(n, fd, &came, e);
	*ret_s = seconds_since(start);
	return r;
}

int network_receive(const struct network_client *n, unsigned port, uint64_t bytes, double *ret_s,
		    struct err *e)
{
	uint64_t came = 0;
	cleanup_fd int fd = connect_to(n, port, e);
	if (fd < 0)
		return fd;
	int64_t start = clock_monotonic_ns();
	int r = drain(n, fd, &came, e);
	*ret_s = seconds_since(start);
	if (r == 0 && came != bytes)
		r = err_set(e, -EIO, "%llu bytes came instead of %llu", (unsigned long long)came,
			    (unsigned long long)bytes);
	return r;
}

int network_echo(const struct network_client *n, unsigned port, unsigned count, double *ret_s,
		 struct err *e)
{
	char byte = 'x';
	cleanup_fd int fd = connect_to(n, port, e);
	if (fd < 0)
		return fd;
	int64_t start = clock_monotonic_ns();
	for (unsigned i = 0; i < count; i++) {
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || read(fd, &byte, 1) != 1)
			return err_set(e, -EIO, "the pod does not answer");
		if (!WITHIN(i) && is_interrupted(n, 0))
			return interrupted(e);
	}
	*ret_s = seconds_since(start);
	return 0;
}

int network_ask(const struct network_client *n, unsigned port, unsigned count, double *ret_s,
		struct err *e)
{
	static const char question[] = "GET / HTTP/1.0\r\n\r\n";
	int64_t start = 0;
	for (unsigned i = 0; i <= count; i++) {
		uint64_t came = 0;
		cleanup_fd int fd = connect_to(n, port, e);
		if (fd < 0)
			return fd;
		if (send(fd, question, strlen(question), MSG_NOSIGNAL) < 0)
			return err_sys(e, -errno, "to the pod");
		int r = drain(n, fd, &came, e);
		if (r == 0 && came == 0)
			r = err_set(e, -EIO, "the pod does not answer");
		if (r < 0)
			return r;
		if (i == 0)
			start = clock_monotonic_ns(); /* the first waited for the service */
	}
	*ret_s = seconds_since(start);
	return 0;
}
