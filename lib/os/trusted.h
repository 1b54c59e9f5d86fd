/* SPDX-License-Identifier: Apache-2.0 */
/* Who could have a hand in a file that somebody else told us to believe, or to execute. */
#ifndef LIB_OS_TRUSTED_H
#define LIB_OS_TRUSTED_H

#include <limits.h>
#include <sys/types.h>

#include "lib/base/err.h"

/*
 * Checks that nobody but root and @user can change what the absolute path @path leads to: every
 * directory on the way, and what is at its end, belongs to one of them and cannot be written by
 * others, and there is no symbolic link. A directory with the sticky bit, as /tmp, may be written
 * by others, who can replace nothing in it that is not theirs. 0, -EPERM or -ELOOP and @e with the
 * remedy, or -errno and @e.
 */
int trusted_path(const char *path, uid_t user, struct err *e);

/* Several paths of one user, of which those in one directory have that looked at once. */
struct trusted {
	uid_t user;
	int fd; /* of the directory that was looked at last; -EBADF: none was */
	char dir[PATH_MAX];
};

/* None so far; and the end of that. */
void trusted_init(struct trusted *t, uid_t user);
void trusted_deinit(struct trusted *t);

/* As trusted_path(), of the next one. */
int trusted_next(struct trusted *t, const char *path, struct err *e);

#endif
