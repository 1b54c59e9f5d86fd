/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a tree to a directory with files.
 *
 * Names come from an image, so nothing is ever reached by a path that has one in it: each directory
 * is opened in the one above it, and everything is made anew, where nothing may be yet, and
 * followed nowhere. Runs inside of a confined child (confine_run_in()).
 *
 * If the caller is root, files get owners, modes, attributes, device numbers and modification times
 * of the tree. Otherwise all belongs to the caller, and what only root can make is left out and
 * counted. Never made are sockets, which mean nothing without the process that listens, and set-ID
 * bits of devices and pipes.
 */
#ifndef IMAGES_EXPORT_UNPACK_H
#define IMAGES_EXPORT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "images/export/archive.h"
#include "images/export/content.h"
#include "images/render/tree.h"
#include "lib/base/err.h"

/* Bytes of all files together, holes included: as many as an image may have. */
#define UNPACK_BYTES_MAX ARCHIVE_BYTES_MAX

/* Who unpacks. */
struct unpack_user {
	uid_t uid; /* 0: may do all that is said above */
	gid_t gid;
};

/* What was left out: files, attributes of all files, set-user-ID and set-group-ID files. */
struct unpack_report {
	size_t devices;
	size_t xattrs;
	size_t set_ids;
};

/*
 * Fills the empty directory @dir_fd, which belongs to @user and is nobody else's to write into,
 * with what is in @t, and gives it the attributes of the root of @t. readers[i] has the contents of
 * inodes of the layer i (enum content_layer). 0 or -errno with @e; then some of it may be there.
 */
int unpack_tree(int dir_fd, const struct tree *t,
		const struct content_reader readers[CONTENT_COUNT_], const struct unpack_user *user,
		struct unpack_report *ret, struct err *e);

#endif
