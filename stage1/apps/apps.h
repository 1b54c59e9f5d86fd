/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The apps of the pod that runs: what the supervisor asks the agent, the backend and the pod
 * directory for each of them, their streams and logs.
 *
 * Those that the pod manifest has at the start are declared: apps_boot() adds and starts them in
 * one go, and what fails there fails the pod. apps_request() changes the limits of apps and, in a
 * mutable pod, adds, starts, stops and removes others; what fails there is the answer to whoever
 * asked.
 */
#ifndef STAGE1_APPS_APPS_H
#define STAGE1_APPS_APPS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"
#include "stage1/agent/control.h"
#include "stage1/agent/dial.h"
#include "stage1/apps/app_request.h"
#include "stage1/apps/apps_config.h"
#include "stage1/apps/confine.h"
#include "stage1/apps/pod_plan.h"
#include "stage1/backend.h"
#include "stage1/pod/timeline.h"
#include "stage1/streams/stream.h"

/*
 * From asking the agent for something to giving up on its reply; generous, as the pod may be
 * emulated.
 */
#define APPS_CALL_LIMIT_MS INT64_C(60000)

/* From SIGKILL to giving up on the end of an app. */
#define APPS_KILL_LIMIT_MS INT64_C(10000)

/* For the rest of an app's output to arrive, before its streams are closed for another start. */
#define APPS_DRAIN_LIMIT_MS INT64_C(1000)

/* Calls to the agent about apps; a call's id is APPS_CALL_ID() of its kind and the app's slot. */
enum apps_call {
	APPS_CALL_ADD,
	APPS_CALL_START,
	APPS_CALL_SIGNAL,
	APPS_CALL_RESIZE,
	APPS_CALL_REMOVE,
	APPS_CALL_UPDATE,
	APPS_CALL_FREEZE,
	APPS_CALL_COUNT_,
};

#define APPS_CALL_ID(call, slot) ((int)(call)*AGENT_APPS_MAX + (int)(slot))

/* First id that apps do not use. */
#define APPS_CALL_END APPS_CALL_ID(APPS_CALL_COUNT_, 0)

struct apps_ops {
	/* All declared apps have been started. */
	void (*started)(void *ctx);
	/*
	 * An app has ended with @status, as status/NAME has it; on @request if that is what
	 * somebody asked for.
	 */
	void (*exited)(void *ctx, int status, bool on_request);
	/* A stream has ended, in good order (@why is NULL) or not. */
	void (*stream_ended)(void *ctx, const struct err *why);
	/* The pod cannot go on. */
	void (*failed)(void *ctx, const struct err *why);
	/* The request @token has ended; @why is NULL if it succeeded. */
	void (*done)(void *ctx, uint64_t token, const struct err *why);
};

struct apps;

/*
 * The declared apps of @config->plan, not sent yet. All in @config outlives it. 0, or -errno and
 * @e.
 */
int apps_new(const struct apps_config *config, const struct apps_ops *ops, void *ctx,
	     struct apps **ret, struct err *e);

/* Closes and frees everything. Accepts NULL. */
void apps_free(struct apps *a);

/* Sends the declared apps, to be added and started. 0 or -errno. */
int apps_boot(struct apps *a);

/* The agent answers: opens the streams of the declared apps. */
void apps_open_streams(struct apps *a);

/* Takes the agent's reply to call @id, which is below APPS_CALL_END. */
void apps_take_reply(struct apps *a, int id, const struct rpc_msg *msg);

/* Takes the news of an app's end. -EPROTO if no such app runs. */
int apps_take_exited(struct apps *a, const struct agent_app_exited *m);

/*
 * The pod ends because an app has failed. What the others are killed with then says nothing of
 * them: their status is 0.
 */
void apps_end_after_failure(struct apps *a);

/* Tells the agent the size of our terminal. */
void apps_resize(struct apps *a);

/* Return code of apps_request() beside -errno. */
enum {
	APPS_PENDING = 1, /* apps_ops.done is called with the token, once, now or later */
};

/*
 * What an entrypoint asks for. 0 if there was nothing to do, APPS_PENDING, -errno and @e; -ESRCH:
 * the app that is to be stopped does not run.
 */
int apps_request(struct apps *a, const struct app_request *q, uint64_t token, struct err *e);

/*
 * Whoever sent the request @token is gone: nobody has to be told of its end. What it asked for goes
 * on.
 */
void apps_forget(struct apps *a, uint64_t token);

/* The pod is going down: all requests end with @why. */
void apps_abort(struct apps *a, const struct err *why);

/* True if there are apps, and all of them have ended. */
bool apps_all_exited(const struct apps *a);

/* Of all streams: whether @is holds for any, and the sum of their progress. */
bool apps_any_stream(const struct apps *a, bool (*is)(const struct stream *s));
uint64_t apps_output_progress(const struct apps *a);

#endif
