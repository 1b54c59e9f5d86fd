/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One app: what it is to run, its process and its streams.
 *
 * The pod moves it through its states, in the order of enum app_state and only forward, but for an
 * EXITED app that is started again: that goes back to ADDING, and to EXITED if it fails. Its
 * streams exist from the first moment, so they can be attached in any state but GONE; those of an
 * app that is started again are new. An app that could not be added, or was removed, is GONE: it
 * has no name any more, and is freed as soon as its PID namespace has ended. All others stay for
 * the life of the pod, so that nobody misses how they ended.
 *
 * The namespace ends when the main process has been reaped, and what the app has left behind with
 * it; of one that shares that of the pod its control group is killed, and tells when it is empty.
 * Only who starts the app again, or removes it, waits for that; the control group is removed some
 * time after it.
 */
#ifndef GUEST_AGENT_POD_APP_H
#define GUEST_AGENT_POD_APP_H

#include "guest-agent/app/confine.h"
#include "guest-agent/app/launch.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/pod_config.h"
#include "guest-agent/pod/streams.h"
#include "guest-agent/pod/update.h"

enum app_state {
	APP_WAITING,  /* accepted; pod.setup is still at work */
	APP_ADDING,   /* its process mounts the root */
	APP_ADDED,    /* its process waits for app.start */
	APP_RUNNING,  /* its process was released, and soon executes the program */
	APP_EXITED,   /* exit says how; streams may still have bytes */
	APP_REMOVING, /* its processes end, then a job deletes what is left of it */
	APP_GONE,     /* could not be added, or was removed; only init is left */
};

struct app {
	enum app_state state;
	struct agent_app_add spec;
	struct pod_caller adder;   /* of app.add, then of app.remove */
	struct pod_caller starter; /* an app.start that waits for ADDED */
	bool start_waits;
	bool starting; /* RUNNING, and its program is not known to run: the starter waits for that */
	bool mounted;  /* it was ADDED before: its root is there */
	const struct rootfs_config *rootfs; /* since it was launched */
	struct job remove_job;
	struct update update;
	struct confinement confinement;
	struct launched process; /* pid 0 before ADDING, and once it was reaped */
	/* First process of its PID namespace, maybe its own; 0: none (yet, or any more). */
	pid_t init;
	/* That of the namespace that apps of the pod share, if it is in there, and init is none. */
	pid_t pod_init;
	int rest_fd; /* what it has left there was killed, and ends: of its control group, or -EBADF */
	struct loop_watch rest_watch;
	bool frozen;   /* its processes stand still, so will others */
	int killed_by; /* a signal that has ended the process, which got SIGKILL for it; 0: none */
	unsigned
		cgroup; /* number of its control group, which no other app has; 0: none (yet, or any more) */
	struct loop_watch hear_watch;
	struct streams io;
	struct agent_app_exited exit;
};

/*
 * A new app in state WAITING with its streams open. Takes the contents of @spec over, unless it
 * fails. 0 or FAULT_SET.
 */
int app_new(struct loop *loop, struct agent_app_add *spec, struct app **ret, struct fault *f);

/* Closes and frees everything. Accepts NULL. */
void app_free(struct app *app);

/*
 * Prepares an EXITED app for another start: streams anew; how it ended is forgotten when it is
 * released. What the host has not read of the old streams is lost. 0 or FAULT_SET.
 */
int app_reopen(struct app *app, struct loop *loop, struct fault *f);

/* What was begun of another start ends; the app is EXITED again. */
void app_fail_restart(struct app *app);

/*
 * Makes the PID namespace unless its init is there (*pod_init of one that apps share, or the
 * app's), the control group of number @cgroup and the process of a WAITING app, or of an EXITED one
 * after app_reopen(), which is then ADDING. @fn(@ctx) is called when app_hear() will have something
 * to say. 0 or FAULT_SET; init may be there also then.
 */
int app_launch(struct app *app, struct loop *loop, const struct pod_config *config,
	       const struct rootfs_names *names, unsigned cgroup, pid_t *pod_init, loop_watch_fn fn,
	       void *ctx, struct fault *f);

/* The first process of the namespace that it is in; 0: none. */
pid_t app_first_process(const struct app *app);

/* True if no process of it is left, and its control group can go. */
bool app_is_empty(const struct app *app);

/*
 * How the mounting of an ADDING app ended: *ret has code 0 if the app is now ADDED. -EAGAIN if it
 * goes on; then the app stays as it is.
 */
int app_hear(struct app *app, struct fault *ret);

/*
 * Lets the process of an ADDED app, or of one that will be, go on to its program. 0 or FAULT_SET.
 */
int app_release(struct app *app, struct fault *f);

/*
 * Records the end of the process, @status as from waitpid(2), and ends what else is in its PID
 * namespace. A RUNNING app has EXITED then, because of a lack of memory if @oom; one that was only
 * ADDED has lost its process and can no longer be released.
 */
void app_reaped(struct app *app, int status, bool oom);

/*
 * Sends @sig to the process. The kernel keeps from the first process of a PID namespace what it has
 * no handler for: what would end any other ends that, too. 0 or -errno.
 */
int app_signal(struct app *app, int sig);

/* The signal that asks it to end. */
int app_stop_signal(const struct app *app);

/* Closes everything of an app that could not be added and ends its PID namespace: it is GONE. */
void app_give_up(struct app *app);

#endif
