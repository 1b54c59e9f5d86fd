/* SPDX-License-Identifier: Apache-2.0 */
/* The small files that control groups are steered by, of both versions, and the texts in them. */
#ifndef LIB_CGROUP_CGROUP_FILE_H
#define LIB_CGROUP_CGROUP_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Writes @text to the file @name, which must exist, below directory @dir. 0 or -errno. */
int cgroup_file_write(int dir, const char *name, const char *text);

/*
 * Reads at most @size - 1 bytes of the file @name below @dir. @text is NUL-terminated, also on
 * failure. 0 or -errno.
 */
int cgroup_file_read(int dir, const char *name, char *text, size_t size);

/* A file of one number; -1 for "max", what is no number, and a file that cannot be read. */
int64_t cgroup_file_number(int dir, const char *name);

/* The number in the line "KEY NUMBER" of @text, -1 if there is none, or it is too large. */
int64_t cgroup_text_number(const char *text, const char *key);

/*
 * The sum of the numbers that follow @key in @text, whose lines are those of one disk each: 0 if
 * there is none, -1 if it is too large.
 */
int64_t cgroup_text_sum(const char *text, const char *key);

/*
 * Calls @fn(@ctx) for each line of the file @name, which are numbers, as in cgroup.procs. 0 or
 * -errno.
 */
int cgroup_file_each(int dir, const char *name, void (*fn)(void *ctx, int64_t number), void *ctx);

#endif
