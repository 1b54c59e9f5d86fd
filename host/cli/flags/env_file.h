/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --set-env-file: NAME=VALUE on each line. */
#ifndef HOST_CLI_FLAGS_ENV_FILE_H
#define HOST_CLI_FLAGS_ENV_FILE_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Largest file: all that an app can be given (AGENT_WORDS_MAX), and as much in comments. */
#define ENV_FILE_MAX ((size_t)4 * 1024 * 1024)

/*
 * Adds the variables in @len bytes of @text, which is changed, to @env. Blank lines and those that
 * begin with '#' or ';' are skipped, and so are blanks ahead of a name; everything behind the first
 * '=' is the value, blanks included. Lines end as on Unix or as on Windows.
 * 0, or -EINVAL, -E2BIG, -ENOMEM and @e naming the line.
 */
int env_file_parse(char *text, size_t len, struct strv *env, struct err *e);

#endif
