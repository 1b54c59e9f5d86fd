/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory that an extraction makes: there is nothing under its name until it is complete.
 */
#ifndef IMAGES_EXPORT_PLACE_H
#define IMAGES_EXPORT_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/data/temp_name.h"

struct place {
	int parent_fd; /* of the directory in which the new one will be */
	int fd;        /* the new one */
	bool overwrite;
	char name[NAME_MAX + 1];
	char temp[TEMP_NAME_LEN + 1]; /* what has to go, or "" */
};

#define PLACE_INIT ((struct place){ .parent_fd = -EBADF, .fd = -EBADF })

/*
 * Makes an empty directory under a hidden temporary name beside @path: mode 0700, of the caller's
 * user and group, without an access control list. If something is there already: without @overwrite
 * an error; else it must be a directory, or a symbolic link to one, which then is meant; the root
 * directory, whatever it is called, is refused. 0 or -errno with @e.
 */
int place_open(const char *path, bool overwrite, struct place *ret, struct err *e);

/*
 * Writes the new directory and all below it to disk, and gives it its name; then an old one is
 * removed. If that fails, because something is mounted in it, say, what is left of it has a
 * temporary name, which @e tells. 0 or -errno with @e.
 */
int place_publish(struct place *p, struct err *e);

/* Unless it was published the new directory is removed. Accepts PLACE_INIT. */
void place_deinit(struct place *p);

#endif
