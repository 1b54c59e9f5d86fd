/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What volumes are made of on the host: directories and files, file systems in files and devices.
 */
#ifndef LIB_OS_VOLUME_SOURCE_H
#define LIB_OS_VOLUME_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Whether a directory or regular file is at @path. Opens nothing. 0, or -errno and @e. */
int volume_source_check(const char *path, struct err *e);

/*
 * Opens the regular file or block device @path, read-only or for both, and locks it (flock(2)): who
 * writes is alone with it. The lock is of the open file, so that whoever inherits the descriptor
 * keeps it. A device that the host has mounted is in use. With @is_qcow2 the file must be one
 * without other files behind it (QEMU's docs/interop/qcow2.txt); without, its content is nobody's
 * business. The descriptor, which is the caller's, or -errno and @e; -EBUSY if it is in use.
 */
int volume_source_open(const char *path, bool read_only, bool is_qcow2, struct err *e);

/* Bytes of the disk in the qcow2 file @fd, 0 if it is none. */
uint64_t volume_source_qcow2_size(int fd);

/*
 * What is at @path among the mounts of the caller, not opened, as with O_PATH: so that what is said
 * of it and what is mounted is the same. The descriptor, which is the caller's, or -errno.
 */
int volume_source_find(const char *path);

/*
 * The directory or file @found as another mount, attached nowhere and to nothing: without devices;
 * read-only if asked; with what is mounted below if @recursive. The mount, which is the caller's,
 * or -errno; -ENOTDIR for all else that may be there.
 */
int volume_source_mount(int found, bool read_only, bool recursive);

#endif
