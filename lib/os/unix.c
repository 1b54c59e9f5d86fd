/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"

static int make_address(const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return str_copy(ret->sun_path, sizeof(ret->sun_path), name);
}

int unix_listen(const char *name, mode_t mode)
{
	struct sockaddr_un addr;
	int r = make_address(name, &addr);
	if (r < 0)
		return r;
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The mode of the socket inode before bind(2) becomes the mode of the name: no window. */
	if (fchmod(fd, mode) < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (listen(fd, SOMAXCONN) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int unix_connect(const char *name)
{
	struct sockaddr_un addr;
	int r = make_address(name, &addr);
	if (r < 0)
		return r;
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Where a connection over TCP would be under way, one of these is refused: unix(7). */
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	r = fd_set_nonblock(fd, false);
	return r < 0 ? r : TAKE_FD(fd);
}

int unix_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ? -errno : 0;
}

/* Moves the descriptors of one control message into @fds; the surplus is closed. */
static size_t collect_fds(const struct cmsghdr *c, int *fds, size_t n, size_t max)
{
	size_t in_message = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < in_message; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (n < max)
			fds[n++] = fd;
		else
			fd_close(fd);
	}
	return n;
}

int unix_recv_fds(int sock, void *mem, size_t size, int fds[UNIX_FDS_MAX], size_t *ret_len,
		  size_t *ret_n_fds)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * UNIX_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = mem, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	ssize_t len;
	do
		len = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	size_t n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			n = collect_fds(c, fds, n, UNIX_FDS_MAX);
	if (msg.msg_flags & MSG_CTRUNC) {
		while (n > 0)
			fd_close(fds[--n]);
		return -EMSGSIZE;
	}
	*ret_len = (size_t)len;
	*ret_n_fds = n;
	return 0;
}

int unix_send_fds(int sock, const void *data, size_t len, const int *fds, size_t n_fds,
		  size_t *ret_len)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * UNIX_FDS_MAX)];
		struct cmsghdr align;
	} control = { { 0 } };
	if (n_fds > UNIX_FDS_MAX)
		return -EINVAL;
	union {
		const void *in;
		void *out;
	} base = { .in = data }; /* struct iovec knows no const */
	struct iovec iov = { .iov_base = base.out, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (n_fds > 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	ssize_t n;
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_len = (size_t)n;
	return 0;
}

int unix_send_buf(int sock, struct buf *out)
{
	while (buf_len(out) > 0) {
		ssize_t n = send(sock, buf_data(out), buf_len(out), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		buf_consume(out, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

int unix_recv_buf(int sock, struct buf *in, size_t max, size_t *ret_len)
{
	char *where;
	ssize_t n;
	int r = buf_reserve(in, max, &where);
	if (r < 0)
		return r;
	do
		n = recv(sock, where, max, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_commit(in, (size_t)n);
	*ret_len = (size_t)n;
	return 0;
}
