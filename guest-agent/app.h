/*
 * One app: what it is to run, its process and its streams.
 *
 * The pod moves it through its states, in the order of enum app_state and only forward; app_start()
 * and app_reaped() do the last two steps themselves. Its streams exist from the first moment, so they
 * can be attached in any state. An app that could not be added is freed, all others stay for the
 * life of the pod, so that nobody misses how they ended.
 */
#ifndef GUEST_AGENT_APP_H
#define GUEST_AGENT_APP_H

#include "guest-agent/job.h"
#include "guest-agent/pod.h"
#include "guest-agent/stream.h"

enum app_state {
	APP_WAITING, /* accepted; pod.setup is still at work */
	APP_ADDING,  /* its job mounts the root */
	APP_ADDED,   /* can be started */
	APP_RUNNING, /* pid is its process */
	APP_EXITED,  /* exit says how; streams may still have bytes */
};

struct app {
	enum app_state state;
	struct agent_app_add spec; /* exec and env are dropped once it was started */
	struct ids ids;
	struct pod_caller adder;
	struct pod_caller starter; /* an app.start that waits for ADDED */
	bool start_waits;
	struct job job;
	pid_t pid;
	int report_fd;    /* why the program could not be executed */
	int child_fds[3]; /* the app's ends, until it is started */
	int devpts_fd;
	struct stream streams[AGENT_STREAM_COUNT_];
	struct agent_app_exited exit;
};

/*
 * A new app in state WAITING with its streams open. Takes the contents of @spec over. 0 or FAULT_SET.
 */
int app_new(struct loop *loop, struct agent_app_add *spec, struct app **ret, struct fault *f);

/* Closes and frees everything. Accepts NULL. */
void app_free(struct app *app);

/* Starts the process of an ADDED app. 0 or FAULT_SET. */
int app_start(struct app *app, const char *root, struct fault *f);

/* Records the end of the process, @status as from waitpid(2). */
void app_reaped(struct app *app, int status);

/* Sets the size of the terminal. 0 or FAULT_SET. */
int app_resize(const struct app *app, int64_t rows, int64_t cols, struct fault *f);

#endif
