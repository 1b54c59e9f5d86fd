/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A further process in an app of a running pod, seen from outside: asks the agent for it, carries
 * its streams, and says how it ended.
 */
#ifndef STAGE1_ENTRY_ENTER_H
#define STAGE1_ENTRY_ENTER_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "stage1/agent/dial.h"

/* From the first dial to the agent's reply; generous, as the pod may be emulated. */
#define ENTER_REPLY_MS INT64_C(60000)

/* Without output from something that the process left behind, from its end to giving up on it. */
#define ENTER_DRAIN_MS INT64_C(2000)

/* From a signal that was passed on to giving up on the process. */
#define ENTER_PATIENCE_MS INT64_C(10000)

/*
 * Exit status of a process that a signal has ended, as shells have it: this and the signal's
 * number.
 */
#define ENTER_SIGNAL_STATUS 128

/* Exit status of a process whose time was over, as timeout(1) has it. */
#define ENTER_TIMEOUT_STATUS 124

struct enter_input {
	const struct agent_route *route;
	const char *secret;          /* AGENT_SECRET_LEN hex digits */
	struct agent_app_exec *exec; /* what to run; of a terminal the size is filled in */
	int64_t timeout_ms;          /* from now on; 0: none */
	int control_fd;              /* of who controls it (stage1/entry/controller.h), or -EBADF */
};

/*
 * Runs the process with this one's standard streams to its end, or to that of the pod. SIGTERM,
 * SIGINT, SIGHUP and SIGQUIT go to it, once; another one, or no end for ENTER_PATIENCE_MS, is
 * -EINTR. Who controls it sends any signals, as many as it likes, and is told how the process
 * fares, instead of what would be written to standard error. 0 and its exit status in *ret_status,
 * ENTER_TIMEOUT_STATUS if it was ended because its time was over, or -errno and @e.
 */
int enter_run(const struct enter_input *in, int *ret_status, struct err *e);

#endif
