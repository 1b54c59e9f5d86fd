/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory, and whom its parts must belong to.
 *
 * It belongs to one user, who alone has the pods and the rendered images in it. It is shared if its
 * owner has opened it to a group: set-group-ID and writable for the group (chmod 3770), and sticky,
 * so that a member cannot put something of his in the place of what is the owner's. Then the group
 * may change what the modes below let it, and nothing else. Whoever uses a data directory trusts
 * its owner and root.
 */
#ifndef LIB_DATA_DATADIR_H
#define LIB_DATA_DATADIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Modes of directories in a shared data directory. */
#define DATADIR_GROUP_READS  ((mode_t)02750) /* the owner's alone */
#define DATADIR_GROUP_ADDS   ((mode_t)03770) /* members have what they put there */
#define DATADIR_GROUP_WRITES ((mode_t)02770)

struct datadir {
	uid_t owner;
	bool shared;
	bool ours; /* we are its owner, or root */
	bool made; /* since the last datadir_sync(): the names of parts are not on the disk yet */
};

/*
 * Checks the directory @fd, which is called @path in messages: -EPERM and @e if others than its
 * owner, or the group of a shared one, can write there, or if it belongs neither to us nor to root
 * and is not shared. A shared one without the sticky bit, as they once were, gets it if that is
 * ours to do. 0 or -errno and @e.
 */
int datadir_check(int fd, const char *path, struct err *e);

/* Looks at the directory @fd without judging it. 0 or -errno. */
int datadir_read(int fd, struct datadir *ret);

/*
 * Opens the directory @name below @parent, a part of the data directory that messages call @what,
 * and checks that it belongs to the owner of the data directory or root, and that nobody can write
 * in it but the owner or, as @shared_mode says, the group of a shared one. With @create a missing
 * one is made: mode 0750, or @shared_mode in a shared data directory; by a member of the group it
 * is not (-EACCES). The descriptor, or -errno and @e; -ENOENT without @e if it is missing and not
 * @create.
 */
int datadir_open(struct datadir *d, int parent, const char *name, const char *what, bool create,
		 mode_t shared_mode, struct err *e);

/*
 * Syncs the directory @fd, called @what, if datadir_open() has made something in it. 0 or -errno
 * and @e.
 */
int datadir_sync(struct datadir *d, int fd, const char *what, struct err *e);

#endif
