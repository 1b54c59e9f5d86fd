/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: always born close-on-exec, -EBADF while unset, closed by scope.
 */
#ifndef LIB_OS_FD_H
#define LIB_OS_FD_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/base/macros.h"

/* Closes @fd if it is open (not negative), keeps errno, returns -EBADF. */
int fd_close(int fd);

static inline void cleanup_fd_(int *fd)
{
	fd_close(*fd);
}

/* Declares a descriptor that is closed at the end of its scope; initialise it with -EBADF. */
#define cleanup_fd CLEANUP(cleanup_fd_)

static inline void cleanup_dir_(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define cleanup_dir CLEANUP(cleanup_dir_)

/* A stream that reads the directory @fd, which is consumed, also on failure. NULL with errno. */
DIR *fd_open_dir(int fd);

/*
 * A stream that reads the directory @fd from its beginning, and moves no offset that others use:
 * @fd stays the caller's. NULL with errno.
 */
DIR *fd_list_dir(int fd);

/* Closes the old descriptor in *@slot and stores @fd there. */
void fd_replace(int *slot, int fd);

/* Turns O_NONBLOCK on or off. 0 or -errno. */
int fd_set_nonblock(int fd, bool on);

/* Turns FD_CLOEXEC on or off. 0 or -errno. */
int fd_set_cloexec(int fd, bool on);

/* Writes all @len bytes to a blocking descriptor, retrying EINTR and short writes. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t len);

/*
 * Reads until end of file or @size bytes. Yields the number of bytes in *ret. 0 or -errno.
 */
int fd_read_full(int fd, void *mem, size_t size, size_t *ret);

/* Reads exactly @size bytes. 0, -EPIPE if the file or pipe ends before, -errno. */
int fd_read_exactly(int fd, void *mem, size_t size);

/*
 * As the first two for @size bytes at @offset of a file, whose own offset stays: what there is of
 * them is read, and all are written. 0 or -errno.
 */
int fd_read_at(int fd, void *mem, size_t size, uint64_t offset, size_t *ret);
int fd_write_at(int fd, const void *data, size_t size, uint64_t offset);

/*
 * Opens /dev/null on every one of the descriptors 0, 1, 2 that is closed, so that no later open
 * lands there by accident. 0 or -errno.
 */
int fd_fill_stdio(void);

/*
 * Closes every descriptor above 2 except the @n listed ones, which need not be sorted. 0 or -errno.
 */
int fd_close_others(const int *keep, size_t n);

/* The same, and makes 0, 1 and 2 /dev/null: what a child that is trusted with nothing is left. */
int fd_keep_only(const int *keep, size_t n);

/*
 * Gives the open file @fd, which has no name (O_TMPFILE), the name @name below @dirfd. Needs /proc.
 * 0 or -errno: -EEXIST if something has the name.
 */
int fd_link_at(int fd, int dirfd, const char *name);

/* True if @fd is /dev/null, whatever its path. */
bool fd_is_dev_null(int fd);

#endif
