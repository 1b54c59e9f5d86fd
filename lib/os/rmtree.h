/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing trees that are deeper than the program may open files, and whose modes are in the way.
 */
#ifndef LIB_OS_RMTREE_H
#define LIB_OS_RMTREE_H

/* Levels that are remembered; a path of PATH_MAX bytes has at most half as many. */
#define RMTREE_DEPTH_MAX 4096

/*
 * Removes what @path below @dirfd (AT_FDCWD allowed) names, and everything below it, without
 * following symbolic links but on the way to its last component, or crossing file systems.
 * Directories that keep their owner out are made
 * accessible first (for which /proc is needed). Whoever moves directories out of the tree meanwhile
 * makes it fail, not lose its way. What is deeper than RMTREE_DEPTH_MAX, as somebody can make it
 * step by step, is moved up first. 0 (also if nothing was there),
 * -EXDEV or -EBUSY at a mount point, -ESTALE if something was moved, or -errno of the first
 * failure.
 */
int rmtree(int dirfd, const char *path);

#endif
