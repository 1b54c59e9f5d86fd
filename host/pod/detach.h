/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod in the background: the supervisor lives on without a terminal, husk returns when the pod is
 * up.
 */
#ifndef HOST_POD_DETACH_H
#define HOST_POD_DETACH_H

#include "host/pod/pod.h"
#include "lib/base/err.h"

/* DETACH_READY: this is the first process, and the pod is up. */
enum {
	DETACH_READY = 1,
};

#define DETACH_POLL_MS 10

/*
 * The end of the supervisor's log that is looked at for why it failed; it writes lines of some 100
 * bytes.
 */
#define DETACH_LOG_MAX ((size_t)4096)

/*
 * Forks, for a pod @p in POD_RUN under our lock. In the new process yields 0: it has a session of
 * its own, /dev/null for standard input and output, POD_FILE_LOG for errors, shares the lock, and
 * is to become stage1's run entrypoint with --detach; until stage1 has the pod ready, it gets
 * SIGTERM when the first process ends. In the first process waits for that: DETACH_READY, or -errno
 * and @e with the reason from the log if the pod ended before.
 */
int pod_detach(const struct pod *p, struct err *e);

/*
 * Yields the last line of the supervisor's log that is no warning, as those may come behind a
 * failure, without its newline; empty if there is none.
 */
void detach_last_line(const struct pod *p, char ret[DETACH_LOG_MAX]);

#endif
