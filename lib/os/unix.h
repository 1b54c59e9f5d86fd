/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: listening, connecting, and passing descriptors. */
#ifndef LIB_OS_UNIX_H
#define LIB_OS_UNIX_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/buf.h"

/* Most descriptors that one message carries here; vhost-user sends at most 8 memory regions. */
#define UNIX_FDS_MAX 8

/*
 * Listens on a stream socket at the path @name, which is at most 107 bytes (use a name relative to
 * the working directory), with @mode. Non-blocking, close-on-exec. The descriptor or -errno.
 */
int unix_listen(const char *name, mode_t mode);

/*
 * Connects to a listening stream socket at @name, without waiting: whoever listens may have it that
 * nobody is accepted, for ever. Blocking from then on, close-on-exec. The descriptor; -ETIMEDOUT if
 * as many wait there already as may; -errno.
 */
int unix_connect(const char *name);

/* A connected pair of stream sockets, close-on-exec, blocking. 0 or -errno. */
int unix_pair(int fds[2]);

/*
 * Receives up to @size bytes and up to UNIX_FDS_MAX descriptors (close-on-exec). *ret_len is 0 at
 * end of file. The caller owns the *ret_n_fds descriptors in @fds. More descriptors than fit are
 * closed and reported as -EMSGSIZE. 0 or -errno.
 */
int unix_recv_fds(int sock, void *mem, size_t size, int fds[UNIX_FDS_MAX], size_t *ret_len,
		  size_t *ret_n_fds);

/*
 * Sends @len bytes in one message with @n_fds descriptors (at most UNIX_FDS_MAX, not consumed).
 * Yields how many bytes went out in *ret_len. Never raises SIGPIPE. 0 or -errno.
 */
int unix_send_fds(int sock, const void *data, size_t len, const int *fds, size_t n_fds,
		  size_t *ret_len);

/*
 * Sends what @out holds, as far as the peer of the stream socket @sock takes it without waiting,
 * and takes that out. Never raises SIGPIPE. 0, also if something is left, or -errno.
 */
int unix_send_buf(int sock, struct buf *out);

/*
 * Receives up to @max bytes from the stream socket @sock behind what @in holds, without waiting.
 * *ret_len is how many there were, 0 at the end. 0; -EAGAIN if there are none yet; -errno.
 */
int unix_recv_buf(int sock, struct buf *in, size_t max, size_t *ret_len);

#endif
