/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of an app: found while files can still be read, executed when nothing else may be
 * possible.
 */
#ifndef GUEST_AGENT_APP_EXECUTE_H
#define GUEST_AGENT_APP_EXECUTE_H

#include "guest-agent/fault.h"
#include "lib/base/str.h"

#define EXECUTE_EXIT_CODE 203 /* the program could not be executed (systemd's EXIT_EXEC) */

#define EXECUTE_INTERPRETER_MAX 255 /* what the kernel reads of a "#!" line, less the NUL */

struct agent_process;
struct ids;

struct execution {
	const struct agent_process *process; /* borrowed */
	struct strv env, paths;              /* paths: those that exist, best first */
	char interpreter[EXECUTE_INTERPRETER_MAX +
			 1]; /* that the first of them asks for, or empty */
};

/*
 * Finds the program of @p, which runs in @app as @ids and has the working directory @cwd, the
 * present one. The memory of @ret is gone with the process, or its execve(2). 0, or FAULT_SET if
 * there is none.
 */
int execute_prepare(const char *app, const struct agent_process *p, const struct ids *ids,
		    const char *cwd, struct execution *ret, struct fault *f);

/* Executes it, with no other system call than execve(2). Comes back with FAULT_SET only. */
int execute(struct execution *x, struct fault *f);

/* The interpreter that the program @path asks for, or "" if it asks for none or cannot be read. */
void execute_find_interpreter(const char *path, char ret[EXECUTE_INTERPRETER_MAX + 1]);

/*
 * Why execve(2) of @path, which asks for @interpreter unless that is empty, failed with @err: names
 * the one that is missing. Writes to @f a message like
 *   Unable to open "/foo-not-there": No such file or directory
 */
void execute_explain(const char *path, const char *interpreter, int err, struct fault *f);

#endif
