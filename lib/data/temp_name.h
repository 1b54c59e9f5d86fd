/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what is not complete yet. */
#ifndef LIB_DATA_TEMP_NAME_H
#define LIB_DATA_TEMP_NAME_H

#include <stddef.h>

#define TEMP_NAME_PREFIX ".husk-export-"
#define TEMP_NAME_LEN    (sizeof(TEMP_NAME_PREFIX) - 1 + 32) /* the prefix and 16 bytes in hex */

/* Writes a hidden name that nobody guesses. 0 or -errno. */
int temp_name_make(char out[TEMP_NAME_LEN + 1]);

/*
 * Splits @path behind its last slash: the directory, which is "." or "/" if there is no more, into
 * @dir of @size bytes; the name of 1 to NAME_MAX bytes into @name of NAME_MAX + 1. 0; -EISDIR if it
 * names no entry of a directory (it is empty or ends in a slash, in "." or in ".."); -ENAMETOOLONG.
 */
int temp_name_split(const char *path, char *dir, size_t size, char *name);

#endif
