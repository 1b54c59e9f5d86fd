/* SPDX-License-Identifier: Apache-2.0 */
/* File systems as "husk export" reads them: ext4, made by mkfs.ext4(8). */
#ifndef STAGE1_POD_MKFS_H
#define STAGE1_POD_MKFS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * Makes a file system on the disk or file @fd, which is as long as that is to be. With the files
 * below the directory @from, or empty (NULL), and with @inodes inodes (0: some). @what for
 * messages. 0, or -errno and @e.
 */
int mkfs_ext4(int fd, const char *from, uint64_t inodes, const char *what, struct err *e);

/* Whether mkfs.ext4 is there. */
bool mkfs_is_there(void);

#endif
