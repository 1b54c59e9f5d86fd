/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/os/fd.h"

int notify_send(const char *socket_name, const char *text)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	if (!socket_name)
		return 0;
	size_t len = strlen(socket_name);
	if ((socket_name[0] != '/' && socket_name[0] != '@') || len < 2)
		return -EINVAL;
	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, socket_name, len);
	if (socket_name[0] == '@')
		addr.sun_path[0] = '\0';
	cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	size_t size = offsetof(struct sockaddr_un, sun_path) + len;
	ssize_t n = sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
			   (struct sockaddr *)&addr, (socklen_t)size);
	return n < 0 ? -errno : 0;
}
