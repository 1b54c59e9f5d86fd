/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX access control lists: ext4 keeps them in a form of its own (fs/ext4/acl.h of Linux), and
 * shows them, as all file systems do, in that of include/uapi/linux/posix_acl_xattr.h.
 */
#ifndef IMAGES_EXPORT_EXT4_ACL_H
#define IMAGES_EXPORT_EXT4_ACL_H

#include <stdbool.h>
#include <stddef.h>

/* True if the attribute @name is such a list. */
bool ext4_acl_is(const char *name);

/*
 * Turns the @size bytes at @disk into the form of the attribute, in @ret with room for @max. The
 * number of bytes; -EBADMSG if it is no list, -E2BIG.
 */
int ext4_acl_convert(const void *disk, size_t size, void *ret, size_t max);

#endif
