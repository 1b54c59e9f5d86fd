/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where clients of containerd have output written: a fifo by its path, or a URI as containerd's
 * runtime v2 has them. Pure.
 */
#ifndef SHIM_TASK_LOG_URI_H
#define SHIM_TASK_LOG_URI_H

#include <limits.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

#define LOG_URI_WORDS_MAX ((size_t)64) /* of the query; nerdctl has two */

enum log_kind {
	LOG_FIFO,   /* "PATH", "fifo://PATH" */
	LOG_FILE,   /* "file://PATH", to which is appended */
	LOG_BINARY, /* "binary://PATH?KEY=VALUE&...": a program that reads it */
};

struct log_uri {
	enum log_kind kind;
	char path[PATH_MAX];
	struct strv words; /* owned: of a program each key, and its value if there is one */
};

/*
 * Reads @text into @ret (log_uri_deinit(), also on failure). 0; -EOPNOTSUPP, -EINVAL, -E2BIG,
 * -ENOMEM with @e.
 */
int log_uri_parse(const char *text, struct log_uri *ret, struct err *e);
void log_uri_deinit(struct log_uri *u);

#endif
