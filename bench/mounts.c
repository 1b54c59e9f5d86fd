/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "lib/os/fd.h"

int mounts_here(struct mounts *ret)
{
	*ret = (struct mounts){ .ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
				.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	int r = ret->ns < 0 || ret->root < 0 ? -errno : 0;
	if (r < 0)
		mounts_close(ret);
	return r;
}

int mounts_enter(const struct mounts *m)
{
	if (setns(m->ns, CLONE_NEWNS) < 0 || fchdir(m->root) < 0 || chroot(".") < 0)
		return -errno;
	return 0;
}

void mounts_close(struct mounts *m)
{
	fd_close(m->ns);
	fd_close(m->root);
	*m = MOUNTS_INIT;
}
