/* SPDX-License-Identifier: Apache-2.0 */
/* The apps of a pod whose agent and backend are played by a test. */
#ifndef TESTS_UNIT_STAGE1_APPS_RIG_H
#define TESTS_UNIT_STAGE1_APPS_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/os/loop.h"
#include "stage1/apps/apps.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

#define TOKENS_MAX  64
#define STREAMS_MAX 16

/* A supervisor with its apps; agent and backend are played by the test. */
struct ctx {
	struct loop loop;
	struct timeline timeline;
	struct pod_plan plan;
	struct control control;
	struct backend_pod pod;
	struct apps *apps;
	int peer;           /* the agent's end of the control connection */
	struct buf from_us; /* what the agent has read and not looked at */
	int64_t id;         /* of the request that the agent looks at */
	/* The backend: what it refuses; whether it says nothing at all. */
	bool refuses_plug, refuses_unplug, is_silent;
	/* The agent's side of the streams. */
	int listener, streams[STREAMS_MAX];
	size_t n_streams;
	/* What the owner is told. */
	uint64_t last_token;
	struct err told[TOKENS_MAX]; /* by token; code 1: not told, 0: success */
	int exits, exit_status, stream_errors, failures;
	bool exit_on_request;
	int exited_result; /* of apps_take_exited() */
};

/* A pod in the fixture that has no app yet. */
void setup(void **state, struct ctx *c);
void teardown(struct ctx *c);

/* Whether the pod directory has it. */
bool exists(const char *path);

/* All that happens by itself. */
void turns(struct ctx *c);
/* Every time limit that is armed is over. */
void time_passes(struct ctx *c);

/*
 * What the agent is asked next: @method of @app, with the signal @sig, negative: for
 * all processes, or 0.
 */
void expect_call(struct ctx *c, const char *method, const char *app, int64_t sig);
/* The same of any parameters, in *ret, which is for rpc_msg_deinit(). */
void expect_message(struct ctx *c, const char *method, struct rpc_msg *ret);

void expect_no_call(struct ctx *c);

/* What the agent sends, or answers to what it was asked last. */
void agent_says(struct ctx *c, const char *json);
void agent_agrees(struct ctx *c);
void agent_refuses(struct ctx *c, const char *text);

/* The news of an end. */
void app_ends(struct ctx *c, const char *app, int code, int sig, bool oom);
void app_exits(struct ctx *c, const char *app, int code, int sig);

/* The agent accepts a stream, or all of them end. */
void take_stream(struct ctx *c);
void end_streams(struct ctx *c);

/* A request; what it returns at once. */
int ask_with_grace(struct ctx *c, enum app_verb verb, const char *app, int64_t grace_ms,
		   struct err *e);

/* Asks for what takes a while; the token of the request. */
uint64_t begin(struct ctx *c, enum app_verb verb, const char *app);

/* Asks for what is refused at once. */
void refused(struct ctx *c, enum app_verb verb, const char *app, int code, const char *text);

/* How the request @token has ended: @error is NULL if it succeeded. */
void told(struct ctx *c, uint64_t token, const char *error);
void not_told(struct ctx *c, uint64_t token);

/* The whole of it, in good order. */
void add(struct ctx *c, const char *app);
void start(struct ctx *c, const char *app);

#endif
