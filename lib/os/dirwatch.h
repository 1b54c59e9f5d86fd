/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify(7) on directories that are open, with the owner of each watch: who reads learns whose
 * directory changed, and nothing about watches that were given up meanwhile.
 */
#ifndef LIB_OS_DIRWATCH_H
#define LIB_OS_DIRWATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "lib/base/macros.h"

#define DIRWATCH_NONE (-1) /* the number of no watch */

struct dirwatch_entry {
	int wd;
	int kind;    /* the owner's word for what the directory is */
	void *owner; /* not owned */
};

/* Filled by dirwatch_init(). */
struct dirwatch {
	int fd;                         /* readable when something has changed; non-blocking */
	struct dirwatch_entry *entries; /* owned, sorted by number: new ones have greater numbers */
	size_t n;
};

/* A change in the directory of @entry: @mask as in inotify(7), @name in it, "" for itself. */
typedef void (*dirwatch_fn)(void *ctx, const struct dirwatch_entry *entry, uint32_t mask,
			    const char *name);

/* 0 or -errno; -EMFILE also if the user has too many (fs.inotify.max_user_instances). */
int dirwatch_init(struct dirwatch *w);

/* Ends all watches. Accepts one whose initialisation failed. */
void dirwatch_deinit(struct dirwatch *w);

/*
 * Watches the directory @fd for the changes in @mask. Needs /proc; a directory is watched once. The
 * number of the watch, -EEXIST, -ENOSPC if the user's watches are used up
 * (fs.inotify.max_user_watches), -errno.
 */
int dirwatch_add(struct dirwatch *w, int fd, uint32_t mask, void *owner, int kind);

/* Ends the watch *@wd, which becomes DIRWATCH_NONE, as it may be already. */
void dirwatch_drop(struct dirwatch *w, int *wd);

/*
 * Reads changes, at most DIRWATCH_READ_SIZE bytes, and calls @fn(@ctx) for each, which may add and
 * drop watches. A watch that has ended with its directory is reported with IN_IGNORED and dropped.
 * Where the kernel has lost changes, @entry is NULL and @mask IN_Q_OVERFLOW. 0, also if there are
 * none; -errno.
 */
#define DIRWATCH_READ_SIZE 16384
int dirwatch_read(struct dirwatch *w, dirwatch_fn fn, void *ctx);

#endif
