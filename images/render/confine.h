/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a function where it can do no harm: in a forked child without privileges.
 *
 * The child keeps the listed descriptors and nothing else; it becomes nobody if it was root, has no
 * capability, opens no file (Landlock), has a memory limit, may use only the system calls that
 * reading, writing and allocating memory take (seccomp), and dies with its parent.
 */
#ifndef IMAGES_RENDER_CONFINE_H
#define IMAGES_RENDER_CONFINE_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define CONFINE_FDS_MAX    ((size_t)136)  /* 128 layers, the output, spare */
#define CONFINE_RESULT_MAX ((size_t)4096) /* bytes of a report that is one structure */
#define CONFINE_UID        65534          /* nobody, nogroup */
#define CONFINE_LEVELS_MAX ((size_t)1056) /* TREE_DEPTH_MAX, and a few */

/*
 * Private memory (RLIMIT_DATA). CONFINE_MEMORY_MAX is for rendering, which never needs more than 64
 * MiB in all: program text, shared libraries and stack are the difference. CONFINE_MEMORY_ZSTD is
 * for rendering with a layer of zstd, whose window may have STREAM_WINDOW_MAX: 192 MiB in all. Only
 * one layer is read at a time. CONFINE_MEMORY_LARGE is for what has two trees in memory and the 256
 * MiB that find the inodes of a disk of 512 GiB (exports), or a dictionary of 64 MiB (xz -9).
 */
#define CONFINE_MEMORY_MAX   ((size_t)60 * 1024 * 1024)
#define CONFINE_MEMORY_ZSTD  (CONFINE_MEMORY_MAX + (size_t)128 * 1024 * 1024)
#define CONFINE_MEMORY_LARGE ((size_t)512 * 1024 * 1024)

#define CONFINE_HAS_MEMORY_LIMIT (!HAS_ADDRESS_SANITIZER)

/* Runs in the child. Appends what it has to report to @result. 0 or -errno with @e. */
typedef int (*confine_fn)(void *ctx, struct buf *result, struct err *e);

/*
 * Runs @fn(@ctx) in a confined child that keeps the @n_fds descriptors @fds open, and waits for it.
 * @result (initialised by the caller with a maximum) gets what the function reported. @what says
 * what is being done ("rendering") in the message for a child that was killed. 0, or the function's
 * -errno with its message in @e, or -errno with @e.
 */
int confine_run(const char *what, confine_fn fn, void *ctx, const int *fds, size_t n_fds,
		struct buf *result, struct err *e);

/* The same with at most @memory_max bytes of memory instead of CONFINE_MEMORY_LARGE. */
int confine_run_within(const char *what, size_t memory_max, confine_fn fn, void *ctx,
		       const int *fds, size_t n_fds, struct buf *result, struct err *e);

/*
 * The same for a function that fills the directory @dir_fd, of which the child gets the same
 * number: it may make files of all types below it by name, write and link them there, and give them
 * owner, mode, attributes and times; it has room for descriptors of CONFINE_LEVELS_MAX directories
 * at a time. Elsewhere it reaches nothing (Landlock; if we may, the directory is its root
 * directory, too). If we are root it stays so, with CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_MKNOD
 * and CAP_SETFCAP: as nobody, what is not finished would belong to all that runs as nobody.
 *
 * When @cancel_fd (-EBADF: none) gets readable the child is killed: -EINTR with @e.
 */
int confine_run_in(const char *what, int dir_fd, int cancel_fd, confine_fn fn, void *ctx,
		   const int *fds, size_t n_fds, struct buf *result, struct err *e);

/*
 * The same for a function that reads the directory @dir_fd, which may be opened with O_PATH, and of
 * which the child gets the same number: it opens directories and files below it, whatever their
 * modes and owners (CAP_DAC_READ_SEARCH, if the caller is root), and nothing elsewhere, as above.
 * It has room for as many descriptors.
 */
int confine_run_reading(const char *what, int dir_fd, confine_fn fn, void *ctx, const int *fds,
			size_t n_fds, struct buf *result, struct err *e);

#endif
