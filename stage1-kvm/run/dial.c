/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/dial.h"

#include <errno.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"

static void finish(struct dial *d, int fd)
{
	dial_fn done = d->done;
	void *ctx = d->ctx;
	if (fd >= 0)
		d->fd = -EBADF; /* belongs to the callback now */
	dial_stop(d);
	done(ctx, fd);
}

/*
 * Takes the answer line, and not one byte more: what follows it is the stream. Yields 0, -EAGAIN
 * while the line is incomplete, or -errno.
 */
static int take_answer(int fd)
{
	char line[DIAL_LINE_MAX];
	ssize_t n = recv(fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNREFUSED;
	char *end = memchr(line, '\n', (size_t)n);
	if (!end)
		return (size_t)n == sizeof(line) ? -EPROTO : -EAGAIN;
	size_t len = (size_t)(end - line) + 1;
	if (recv(fd, line, len, MSG_DONTWAIT) != (ssize_t)len)
		return -EPROTO;
	return memcmp(line, "OK ", 3) == 0 ? 0 : -EPROTO;
}

static void on_answer(void *ctx, uint32_t events)
{
	(void)events;
	struct dial *d = ctx;
	int r = take_answer(d->fd);
	if (r == -EAGAIN || r == -EINTR)
		return;
	if (r == -ECONNRESET)
		r = -ECONNREFUSED;
	finish(d, r < 0 ? r : d->fd);
}

/* The kernel has connected, or failed to. */
static void on_connected(void *ctx, uint32_t events)
{
	(void)events;
	struct dial *d = ctx;
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == ECONNRESET) /* how a vsock refuses */
		error = ECONNREFUSED;
	finish(d, error ? -error : d->fd);
}

/* The descriptor of a connection under way, or -errno. */
static int connect_kernel(uint32_t cid, unsigned port)
{
	struct sockaddr_vm addr = { .svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port };
	const struct timeval limit = { .tv_sec = DIAL_TIMEOUT_S };
	cleanup_fd int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

/* The same for husk-vsock, with the request sent. */
static int connect_unix(const char *socket, unsigned port)
{
	cleanup_fd int fd = unix_connect(socket);
	if (fd < 0)
		return fd;
	char line[DIAL_LINE_MAX];
	int len = snprintf(line, sizeof(line), "CONNECT %u\n", port);
	int r = fd_write_all(fd, line, (size_t)len);
	if (r == 0)
		r = fd_set_nonblock(fd, true);
	return r < 0 ? r : TAKE_FD(fd);
}

int dial_start(struct dial *d, struct loop *loop, const struct dial_target *target, unsigned port,
	       dial_fn done, void *ctx)
{
	bool kernel = !target->socket;
	*d = (struct dial){ .fd = -EBADF, .watch = LOOP_WATCH_INIT, .done = done, .ctx = ctx };
	cleanup_fd int fd =
		kernel ? connect_kernel(target->cid, port) : connect_unix(target->socket, port);
	if (fd < 0)
		return fd;
	int r = loop_watch_add(loop, &d->watch, fd, kernel ? EPOLLOUT : EPOLLIN,
			       kernel ? on_connected : on_answer, d);
	if (r < 0)
		return r;
	d->loop = loop;
	d->fd = TAKE_FD(fd);
	return 0;
}

void dial_stop(struct dial *d)
{
	if (!d->loop)
		return;
	loop_watch_remove(&d->watch);
	d->fd = fd_close(d->fd);
	d->loop = NULL;
}
