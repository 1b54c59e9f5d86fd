/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event handlers of an app: programs that run as root in its namespaces before it (pre-start) and
 * after it (post-stop), confined as it is. They write to its streams and read nothing. For the
 * process that becomes the app, in the app's root and working directory, with all that is mounted
 * there.
 */
#ifndef GUEST_AGENT_APP_HANDLER_H
#define GUEST_AGENT_APP_HANDLER_H

#include "guest-agent/fault.h"
#include "lib/base/str.h"

struct agent_process;
struct confinement;

struct handler {
	const char *app, *name;
	const struct strv *exec;             /* empty: there is nothing to run */
	const struct agent_process *process; /* the app's */
	const struct confinement *confinement;
	const char *cwd; /* the present one */
};

/* Runs @h to its end. 0, or FAULT_SET with AGENT_E_INTERNAL if it cannot be executed or fails. */
int handler_run(const struct handler *h, struct fault *f);

/*
 * Forks. 0 in the child, which is to become the app, or FAULT_SET. The parent does not come back:
 * it hands the signals that the agent sends it on to the app, waits for the app's end, runs @h, and
 * ends as the app did. @say_fd, on which the child speaks, is closed in the parent.
 */
int handler_stay_behind(const struct handler *h, int say_fd, struct fault *f);

#endif
