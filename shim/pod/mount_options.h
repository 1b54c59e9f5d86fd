/* SPDX-License-Identifier: Apache-2.0 */
/* Options of mount(8), as they are in fstab(5) and in containerd's mounts. Pure. */
#ifndef SHIM_POD_MOUNT_OPTIONS_H
#define SHIM_POD_MOUNT_OPTIONS_H

#include <limits.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Of the file system: a page, as mount(2) takes it. */
#define MOUNT_DATA_MAX ((size_t)4095)

/* A file system of a snapshot, as mount(8) would be told of it. Borrowed. */
struct husk_mount {
	const char *type, *source, *target; /* target: below the root directory; "" for itself */
	char *const *options;               /* words of fstab(5) */
	size_t n_options;
};

struct mount_words {
	unsigned long flags; /* MS_... */
	char dir[PATH_MAX];  /* the working directory that paths in @data need; "": any */
	char data[MOUNT_DATA_MAX + 1];
};

/*
 * Reads @n words. The directories of overlayfs are said relative to the one that all are in, or an
 * image with fifty layers would be too long. 0, or -E2BIG and @e if what is left for the file
 * system is too long.
 */
int mount_words_parse(char *const *words, size_t n, struct mount_words *ret, struct err *e);

#endif
