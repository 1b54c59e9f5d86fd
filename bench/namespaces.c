/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

int namespaces_here(struct namespaces *ret)
{
	*ret = (struct namespaces){
		.mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
		.network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
		.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
	};
	int r = ret->mounts < 0 || ret->network < 0 || ret->root < 0 ? -errno : 0;
	if (r < 0)
		namespaces_close(ret);
	return r;
}

int namespaces_enter(const struct namespaces *n)
{
	if (setns(n->network, CLONE_NEWNET) < 0 || setns(n->mounts, CLONE_NEWNS) < 0 ||
	    fchdir(n->root) < 0 || chroot(".") < 0)
		return -errno;
	return 0;
}

void namespaces_close(struct namespaces *n)
{
	fd_close(n->mounts);
	fd_close(n->network);
	fd_close(n->root);
	*n = NAMESPACES_INIT;
}

int namespaces_call(const struct namespaces *n, int (*fn)(void *ctx), void *ctx)
{
	CLEANUP(namespaces_close) struct namespaces home = NAMESPACES_INIT;
	cleanup_fd int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : namespaces_here(&home);
	if (r == 0)
		r = namespaces_enter(n);
	if (r < 0)
		return r;
	r = fn(ctx);
	int back = namespaces_enter(&home);
	if (back < 0 || fchdir(dir) < 0)
		return back < 0 ? back : -errno;
	return r;
}
