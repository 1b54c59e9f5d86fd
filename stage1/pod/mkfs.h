/* SPDX-License-Identifier: Apache-2.0 */
/* The file system of a scratch disk, as "husk export" reads it: ext4, made by mkfs.ext4(8). */
#ifndef STAGE1_POD_MKFS_H
#define STAGE1_POD_MKFS_H

#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Makes an empty one on the disk or file @fd, which is as long as that is to be. @what for
 * messages. 0, or -errno and @e.
 */
int mkfs_ext4(int fd, const char *what, struct err *e);

/* Whether mkfs.ext4 is there. */
bool mkfs_is_there(void);

#endif
