/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths that somebody else may influence: resolved by the kernel below a directory, or not at all.
 */
#ifndef LIB_OS_PATH_H
#define LIB_OS_PATH_H

#include <stddef.h>
#include <sys/types.h>

/*
 * openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS: the result is below @dirfd whatever
 * symbolic links or ".." @path has. @flags get O_CLOEXEC added. The descriptor or -errno (-EXDEV
 * for an escape).
 */
int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/*
 * Creates the directory @path and its missing parents with @mode, like mkdir -p, durably, and opens
 * it. For paths that the user of the program chose. The descriptor or -errno.
 */
int path_make_dirs(const char *path, mode_t mode);

/*
 * The directory of the running executable followed by "/" @suffix, normalised by the kernel, in
 * @out of @size bytes. 0, -ENOENT if that does not exist, -errno.
 */
int path_from_self(const char *suffix, char *out, size_t size);

/*
 * Looks @name up in @path_list (colon-separated directories, as in PATH); a @name with a slash is
 * taken as it is. Fills @out with an executable regular file's path. 0, -ENOENT, -ENAMETOOLONG.
 */
int path_find_program(const char *name, const char *path_list, char *out, size_t size);

#endif
