/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mount and network namespaces beside our own. setns(2) changes the root directory to that of the
 * mount namespace, which is another one than ours in a chroot(2): so the root is kept, too.
 */
#ifndef BENCH_NAMESPACES_H
#define BENCH_NAMESPACES_H

#include <errno.h>

struct namespaces {
	int mounts, network, root; /* -EBADF: those of this process */
};

#define NAMESPACES_INIT ((struct namespaces){ -EBADF, -EBADF, -EBADF })

/* Where this process is now. The descriptors are for namespaces_close(). 0 or -errno. */
int namespaces_here(struct namespaces *ret);

/* Goes there. The working directory is its root then. 0 or -errno. */
int namespaces_enter(const struct namespaces *n);

/* Accepts NAMESPACES_INIT. */
void namespaces_close(struct namespaces *n);

/*
 * Has @fn done there by this process, which then comes back. What @fn returns, or -errno: it may
 * have been done all the same.
 */
int namespaces_call(const struct namespaces *n, int (*fn)(void *ctx), void *ctx);

#endif
