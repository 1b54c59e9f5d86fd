/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "lib/base/hex.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"

#define BACKLOG     128  /* connections that wait: containerd has one or two */
#define END_WAIT_MS 2000 /* a process that was killed ends, unless a disk does not answer */

int listener_path(const char *address, const char *ns, const char *id, char ret[PATH_MAX])
{
	struct sha256_ctx ctx;
	uint8_t digest[SHA256_DIGEST_SIZE];
	char hex[2 * SHA256_DIGEST_SIZE + 1];
	const char *const parts[] = { address, "/", ns, "/", id };
	sha256_init(&ctx);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		sha256_update(&ctx, strlen(parts[i]), (const uint8_t *)parts[i]);
	sha256_digest(&ctx, sizeof(digest), digest);
	hex_encode(digest, sizeof(digest), hex);
	int n = snprintf(ret, PATH_MAX, LISTENER_DIR "/%s", hex);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int listener_open(const char *path, struct err *e)
{
	int fd = unix_connect(path);
	if (fd >= 0) {
		fd_close(fd);
		return err_set(e, -EADDRINUSE, "a shim for this container runs already");
	}
	unlink(path);
	fd = unix_listen(path, 0600);
	return fd < 0 ? err_sys(e, fd, "cannot listen at \"%s\"", path) : fd;
}

int listener_claim(int fd)
{
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

/* Who listens at @path; 0: nobody. */
static pid_t find_listener(const char *path)
{
	cleanup_fd int fd = unix_connect(path);
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

void listener_end(const char *path)
{
	pid_t pid = find_listener(path);
	cleanup_fd int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -EBADF;
	/* Who still listens now is who was opened, and nobody who got his number later. */
	if (pidfd >= 0 && find_listener(path) == pid &&
	    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };
		poll(&p, 1, END_WAIT_MS);
	}
	unlink(path);
}
