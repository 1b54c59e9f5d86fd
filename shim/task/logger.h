/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that reads what a process writes, to log it somewhere, as containerd's runtime v2 has
 * them: it gets standard output at descriptor 3, standard error at 4, at 5 a pipe which it closes
 * when it is ready, and CONTAINER_ID and CONTAINER_NAMESPACE. It ends when both have ended, also
 * behind the shim's end.
 */
#ifndef SHIM_TASK_LOGGER_H
#define SHIM_TASK_LOGGER_H

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "shim/task/log_uri.h"

/* Whose output it is. Borrowed. */
struct logger_source {
	const char *id, *ns;
};

/*
 * Starts the program of @u. *ret_out and *ret_err, the caller's, are what to write to. That it is
 * ready is not waited for: the pipes hold what comes meanwhile. 0, or -errno and @e.
 */
int logger_start(struct loop *loop, const struct log_uri *u, const struct logger_source *source,
		 int *ret_out, int *ret_err, struct err *e);

#endif
