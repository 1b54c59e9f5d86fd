/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The kernel does not follow ".." while anybody renames or mounts something, wherever that is, and
 * says EAGAIN; without a machine of our own that may be anybody on the host.
 */
int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC),
				.mode = flags & O_CREAT ? 0644 : 0,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd;
	do
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : (int)fd;
}
