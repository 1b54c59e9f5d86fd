/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as JSON, in the form of the files it came from. */
#ifndef HOST_CONFIG_PRINT_H
#define HOST_CONFIG_PRINT_H

#include <stdbool.h>

#include "host/config/config.h"
#include "lib/base/buf.h"

/*
 * Longest output: an entry repeats of its file no more than there is, and has some 300 bytes
 * besides; escapes never get longer than they were in the file.
 */
#define CONFIG_OUTPUT_MAX (2 * AUTHS_MAX * (CONFIG_FILE_MAX + 1024))

/*
 * Appends {"stage0": [...]} and a newline to @out: an "auth" for each host, a "dockerAuth" for each
 * registry, a "paths" and a "stage1", always both, with empty strings for what nobody configured.
 * Credentials are printed as they are. On one line, or @pretty as json_write() does it. Errors as
 * buf_append().
 */
int config_print(const struct config *c, bool pretty, struct buf *out);

#endif
