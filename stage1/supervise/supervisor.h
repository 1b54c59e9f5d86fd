/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of one pod: watches it come up, runs the apps, takes everything down again.
 */
#ifndef STAGE1_SUPERVISE_SUPERVISOR_H
#define STAGE1_SUPERVISE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1/apps/confine.h"
#include "stage1/apps/pod_plan.h"
#include "stage1/backend.h"
#include "stage1/pod/timeline.h"
#include "stage1/supervise/names.h"
#include "stage1/supervise/network.h"

/* Time limits of the way down; generous, as the pod may be emulated. */
#define STOP_GRACE_MS   INT64_C(10000) /* the apps', from SIGTERM to SIGKILL */
#define STOP_LIMIT_MS   INT64_C(20000) /* beyond the grace: kill, write out, others' drain */
#define OTHERS_DRAIN_MS INT64_C(5000)  /* for who has attached to read to the end */
#define DRAIN_LIMIT_MS  INT64_C(5000)  /* without progress of output that somebody still reads */
#define DRAINS_MAX      4 /* of those limits, for output that goes on although nobody holds it up */

/* From a broken connection to believing that no dead process explains it. */
#define SUSPICION_MS INT64_C(1000)

/* Between two attempts to reach an agent that does not listen yet. */
#define DIAL_RETRY_MS INT64_C(50)

struct supervisor_input {
	const struct pod_plan *plan; /* its messages are sent, after filling in what is ours */
	const struct backend *backend;
	struct backend_pod *pod; /* to be started before supervisor_run() */
	const char *hostname;
	const struct strv *sysctls; /* of the pod, "NAME=VALUE" (lib/wire/sysctls.h) */
	const char *secret;         /* AGENT_SECRET_LEN hex digits */
	int pod_fd;                 /* the pod directory, which is the working directory, too */
	struct network *network;    /* received at the latest when the agent is up */
	const struct names_options *names;
	bool is_host_net;               /* the pod shares the host's network */
	const char *notify;             /* socket of the service manager, or NULL */
	struct confine_options confine; /* of apps that come later */
	bool interactive; /* the pod's only app gets the terminal that is standard input */
	bool detach;      /* nobody reads the apps' output: it goes into logs */
	uint64_t boot_timeout_s;
};

struct supervisor;

/*
 * Prepares a supervisor; blocks SIGTERM, SIGINT, SIGHUP, SIGQUIT and SIGWINCH. @in and what it
 * points to must outlive it. -ENOMEM or -errno with @e set.
 */
int supervisor_new(const struct supervisor_input *in, struct loop *loop, struct timeline *timeline,
		   struct supervisor **ret, struct err *e);

/* What to start the pod with; the context is the supervisor. */
extern const struct backend_events supervisor_backend_events;

/*
 * Supervises the pod, which was started, until nothing of it runs. 0 and the pod's exit status in
 * *ret_status (that of the first app that failed, or 0), or -errno with @e set.
 */
int supervisor_run(struct supervisor *s, int *ret_status, struct err *e);

/* Closes and frees everything. Accepts NULL. */
void supervisor_free(struct supervisor *s);

/* For CLEANUP(). */
void supervisor_freep(struct supervisor **s);

#endif
