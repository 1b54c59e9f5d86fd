/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that an export makes: there is nothing under its name until it is complete.
 */
#ifndef LIB_DATA_TARGET_H
#define LIB_DATA_TARGET_H

#include <limits.h>
#include <stdbool.h>

#include "lib/base/err.h"

struct target {
	int dir_fd;       /* of the directory in which the file will be */
	int fd;           /* the file, read-write */
	const char *what; /* borrowed */
	bool overwrite;
	char name[NAME_MAX + 1];
	char temp[NAME_MAX + 1]; /* a name that has to go, or "" */
};

#define TARGET_INIT ((struct target){ .dir_fd = -EBADF, .fd = -EBADF })

/*
 * Opens a new file without a name (O_TMPFILE; where the file system cannot do that, one under a
 * hidden temporary name) in the directory of @path, mode 0644 without the bits of umask(2). If
 * something is there already: without @overwrite ("WHAT exists ..."), or if it is not a regular
 * file, an error. 0 or -errno with @e.
 */
int target_open(const char *path, const char *what, bool overwrite, struct target *ret,
		struct err *e);

/*
 * Syncs the file and gives it its name. With @overwrite the old file is replaced at once; without,
 * a file that came meanwhile stays and this is an error. 0 or -errno with @e.
 */
int target_publish(struct target *t, struct err *e);

/* Closes the file; unless it was published nothing is left of it. Accepts TARGET_INIT. */
void target_deinit(struct target *t);

#endif
