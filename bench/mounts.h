/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mount namespaces beside our own. setns(2) changes the root directory to that of the namespace,
 * which is another one than ours in a chroot(2): so the root is kept, too.
 */
#ifndef BENCH_MOUNTS_H
#define BENCH_MOUNTS_H

#include <errno.h>

struct mounts {
	int ns, root; /* -EBADF: those of this process */
};

#define MOUNTS_INIT ((struct mounts){ -EBADF, -EBADF })

/* Where this process is now. The descriptors are for mounts_close(). 0 or -errno. */
int mounts_here(struct mounts *ret);

/* Goes there. The working directory is its root then. 0 or -errno. */
int mounts_enter(const struct mounts *m);

/* Accepts MOUNTS_INIT. */
void mounts_close(struct mounts *m);

#endif
