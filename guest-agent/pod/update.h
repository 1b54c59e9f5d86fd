/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New limits of an app, for app.update.
 *
 * The kernel may take its time to set them: it gives back memory first. So a child process does
 * (guest-agent/pod/job.h), one at a time for each app. They are the app's when it has succeeded; if
 * the app has another control group by then, as it was started again with what it had before, they
 * are set once more.
 */
#ifndef GUEST_AGENT_POD_UPDATE_H
#define GUEST_AGENT_POD_UPDATE_H

#include "guest-agent/fault.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/pod_config.h"
#include "lib/cgroup/cgroup_limits.h"

struct cgroup_dir;

struct update {
	struct job job; /* pid 0: none is at work */
	struct pod_caller caller;
	unsigned cgroup; /* whose limits are being set */
	struct cgroup_limits wanted;
};

#define UPDATE_INIT ((struct update){ .job = JOB_INIT })

/* Return code beside 0 and FAULT_SET: the job is at work. */
enum {
	UPDATE_PENDING = 3,
};

/* The app whose limits they are. All is borrowed. */
struct updated {
	const struct cgroup_dir *dir;
	unsigned cgroup;              /* number of its control group now; 0: none */
	struct cgroup_limits *limits; /* what it has, also when it is started again */
};

/*
 * Begins to give @app, which has no update at work, the limits of @m, for @caller. 0: they are; it
 * has no control group now. UPDATE_PENDING: update_finish() will tell. Or FAULT_SET.
 */
int update_start(struct update *u, const struct updated *app, const struct agent_app_update *m,
		 struct pod_caller caller, struct fault *f);

/*
 * To be called when the process of the job was reaped. True: the caller is to have the answer, *ret
 * (code 0: the limits are the app's); false: it goes on.
 */
bool update_finish(struct update *u, const struct updated *app, struct fault *ret);

#endif
