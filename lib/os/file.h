/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small files, relative to a directory descriptor. */
#ifndef LIB_OS_FILE_H
#define LIB_OS_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads the regular file @name below @dirfd (AT_FDCWD allowed), following no symbolic link in the
 * last component. *ret is NUL-terminated and owned by the caller, *ret_len (may be NULL) its length
 * without that NUL. -EFBIG beyond @max bytes, -EINVAL if it is not a regular file, else -errno.
 */
int file_read_at(int dirfd, const char *name, size_t max, char **ret, size_t *ret_len);

/* FILE_E_OTHER: there is no regular file of that name, but perhaps something else. */
enum {
	FILE_E_OTHER = 1,
};

/*
 * Opens the regular file @name below @dirfd for reading. Whatever else bears the name (symbolic
 * link, fifo, device, directory) is looked at without being opened; what is opened is what was
 * looked at, also if somebody swaps names meanwhile. Needs /proc. 0 and the caller's *ret_fd,
 * FILE_E_OTHER, -errno.
 */
int file_open_regular_at(int dirfd, const char *name, int *ret_fd);

/*
 * Reads the open file @fd from its offset to its end. *ret, *ret_len and errors as file_read_at().
 */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/*
 * Reads what a user names on the command line: any kind of file, pipes included, links followed, to
 * its end. *ret and *ret_len as file_read_at(). -EFBIG beyond @max bytes, else -errno.
 */
int file_read_path(const char *path, size_t max, char **ret, size_t *ret_len);

/*
 * Creates or replaces @name below @dirfd: a temporary file in the same directory is written, synced
 * and renamed, so a reader or a crash sees the old content or the new. It has @mode, whatever the
 * umask. 0 or -errno, and nothing is left behind on failure.
 */
int file_write_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode);

/*
 * The same without syncing: readers see the old content or the new, but a power cut may lose the
 * file's content. For what means nothing after a reboot.
 */
int file_replace_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode);

/*
 * Writes the file that a user names on the command line, mode @mode without the bits of umask(2).
 * In a directory in which others can make names, as in /tmp, whatever has the name is replaced by a
 * new file: not written to, and a symbolic link is not followed. Elsewhere it is written as the
 * shell would, through links, also to a pipe or a device. 0 or -errno.
 */
int file_save_path(const char *path, const void *data, size_t len, mode_t mode);

/*
 * Creates @name as an empty file if it is not there, else sets its mtime to now: one change, so who
 * watches the directory never sees a new file with a time that is still to change. 0 or -errno.
 */
int file_touch_at(int dirfd, const char *name, mode_t mode);

/*
 * Makes the file @to a copy of the file @from, holes staying holes, also between file systems. 0 or
 * -errno.
 */
int file_copy_sparse(int from, int to);

#endif
