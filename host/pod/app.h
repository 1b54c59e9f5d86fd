/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding, starting, stopping and removing apps of a mutable pod, and changing limits of any pod and
 * its apps; app.c explains the order of effects.
 */
#ifndef HOST_POD_APP_H
#define HOST_POD_APP_H

#include <stdint.h>

#include "host/launch/stage1.h"
#include "host/manifest/request.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"

/* A pod, that an app is, or will be, in. All is borrowed. */
struct app_target {
	struct pods *pods;
	const struct pod *pod;
	const struct stage1 *stage1;
};

/* Seconds from SIGTERM to SIGKILL, unless the user says otherwise. */
#define APP_GRACE_DEFAULT_S 10

/* What of the limits of an app, or of a pod as a whole, is to be changed. */
struct limits_change {
	unsigned changed;        /* bit N: enum isolator N, whose value is a number, ... */
	struct isolators values; /* ... and is to be this; none here: there is to be no limit */
};

/* Return code beside -errno. APP_POD_STOPPED: the pod has ended, and with it the app. */
enum {
	APP_POD_STOPPED = 1,
};

/*
 * Adds the one app of @q to the pod, which runs and is mutable, from an image that is opened, and
 * rendered if need be, as for pod_run(). An app of that name which was only half added or removed
 * is removed first. 0, or -errno and @e; then nothing of the app is left.
 */
int pod_app_add(const struct app_target *t, const struct run_request *q, int data_fd,
		const char *data_path, struct err *e);

/*
 * Starts app @name, for the first time or again; one that runs is left alone. 0, or -errno and @e.
 */
int pod_app_start(const struct app_target *t, const char *name, struct err *e);

/*
 * Stops app @name: SIGTERM, after @grace_s seconds SIGKILL; returns when it has ended. 0,
 * APP_POD_STOPPED, or -errno and @e.
 */
int pod_app_stop(const struct app_target *t, const char *name, int64_t grace_s, struct err *e);

/*
 * Sends the signal @number, 1 to AGENT_SIGNAL_MAX, to the main process, or to @all, of app @name of
 * a pod that runs, mutable or not. 0; -ESRCH and @e if the app does not run; -errno and @e.
 */
int pod_app_signal(const struct app_target *t, const char *name, int number, bool all,
		   struct err *e);

/*
 * Has all processes of the app stand still, or go on (not @pause). 0; -ESRCH and @e if it does not
 * run; -errno and @e.
 */
int pod_app_pause(const struct app_target *t, const char *name, bool pause, struct err *e);

/*
 * Changes limits of app @name of a pod that runs, mutable or not: in its manifest, and of its
 * processes. 0, or -errno and @e; then it has those that it had.
 */
int pod_app_update(const struct app_target *t, const char *name, const struct limits_change *l,
		   struct err *e);

/*
 * Changes limits of the pod as a whole, which runs, as the host holds them. 0, or -errno and @e;
 * then it has those that it had.
 */
int pod_update(const struct app_target *t, const struct limits_change *l, struct err *e);

/*
 * Removes app @name with what it has written and logged; one that runs is stopped first. The pod
 * may have ended. 0, or -errno and @e.
 */
int pod_app_remove(const struct app_target *t, const char *name, int64_t grace_s, struct err *e);

#endif
