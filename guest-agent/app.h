/*
 * One app: what it is to run, its process and its streams.
 *
 * The pod moves it through its states, in the order of enum app_state and only forward, but for an
 * EXITED app that is started again: that goes back to ADDING, and to EXITED if it fails. Its streams
 * exist from the first moment, so they can be attached in any state; those of an app that is started
 * again are new. An app that could not be added is freed, all others stay until app.remove or the
 * end of the pod, so that nobody misses how they ended.
 */
#ifndef GUEST_AGENT_APP_H
#define GUEST_AGENT_APP_H

#include "guest-agent/job.h"
#include "guest-agent/launch.h"
#include "guest-agent/pod.h"
#include "guest-agent/streams.h"

enum app_state {
	APP_WAITING,  /* accepted; pod.setup is still at work */
	APP_ADDING,   /* its process mounts the root */
	APP_ADDED,    /* its process waits for app.start */
	APP_RUNNING,  /* its process was released, and soon executes the program */
	APP_EXITED,   /* exit says how; streams may still have bytes */
	APP_REMOVING, /* its processes end, then a job deletes what is left of it */
};

struct app {
	enum app_state state;
	struct agent_app_add spec;
	struct pod_caller adder;   /* of app.add, then of app.remove */
	struct pod_caller starter; /* an app.start that waits for ADDED */
	bool start_waits;
	bool mounted;                       /* it was ADDED before: its root is there */
	const struct rootfs_config *rootfs; /* since it was launched */
	struct job remove_job;
	struct launched process; /* pid 0 before ADDING, and once it was reaped */
	struct loop_watch hear_watch;
	struct streams io;
	struct agent_app_exited exit;
};

/*
 * A new app in state WAITING with its streams open. Takes the contents of @spec over. 0 or FAULT_SET.
 */
int app_new(struct loop *loop, struct agent_app_add *spec, struct app **ret, struct fault *f);

/* Closes and frees everything. Accepts NULL. */
void app_free(struct app *app);

/*
 * Prepares an EXITED app for another start: streams anew; how it ended is forgotten when it is
 * released. What the host has not read of the old streams is lost. 0 or FAULT_SET.
 */
int app_reopen(struct app *app, struct loop *loop, struct fault *f);

/*
 * Makes the process of a WAITING app, or of an EXITED one after app_reopen(), which is then ADDING. @fn(@ctx) is called when app_hear() will
 * have something to say. 0 or FAULT_SET.
 */
int app_launch(struct app *app, struct loop *loop, const struct rootfs_config *rootfs,
	       const char *hostname, loop_watch_fn fn, void *ctx, struct fault *f);

/*
 * How the mounting of an ADDING app ended: *ret has code 0 if the app is now ADDED. -EAGAIN if it goes
 * on; then the app stays as it is.
 */
int app_hear(struct app *app, struct fault *ret);

/* Lets the process of an ADDED app, or of one that will be, go on to its program. 0 or FAULT_SET. */
int app_release(struct app *app, struct fault *f);

/*
 * Records the end of the process, @status as from waitpid(2). A RUNNING app has EXITED then; one that
 * was only ADDED has lost its process and can no longer be released.
 */
void app_reaped(struct app *app, int status);

#endif
