/* The child that becomes an app. */
#ifndef GUEST_AGENT_LAUNCH_H
#define GUEST_AGENT_LAUNCH_H

#include "guest-agent/ids.h"
#include "lib/wire/agent.h"

#define LAUNCH_EXIT_CODE 203 /* the program could not be executed (systemd's EXIT_EXEC) */

struct launch {
	const char *root; /* the app's mounted root directory */
	const struct agent_app_add *spec;
	const struct ids *ids;
	int stdio[3];
	int devpts_fd; /* detached devpts mount of the app's terminal, or -EBADF */
};

/*
 * Forks the app. It ends with LAUNCH_EXIT_CODE if anything before its program's first instruction
 * fails; the reason can then be read from *ret_report, which the caller closes. The descriptors in
 * @l stay the caller's. 0 or FAULT_SET.
 */
int launch(const struct launch *l, pid_t *ret_pid, int *ret_report, struct fault *f);

/*
 * Why execve(2) of @path, which is @err otherwise, found nothing: names the interpreter that @path
 * asks for if that is what is missing. Writes to @f a message like
 *   Unable to open "/foo-not-there": No such file or directory
 */
void launch_explain(const char *path, int err, struct fault *f);

#endif
