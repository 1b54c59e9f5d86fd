/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend without a machine: the test is the pod. Its route is the unix socket FAKE_AGENT_SOCKET
 * in the working directory, where an agent of the test listens. What it is asked for waits until
 * the test answers; that it was killed or dropped is counted, and told as the pod's end from the
 * loop.
 */
#ifndef TESTS_SUPPORT_FAKE_BACKEND_H
#define TESTS_SUPPORT_FAKE_BACKEND_H

#include "stage1/backend.h"

#define FAKE_AGENT_SOCKET "agent.sock"
#define FAKE_LAST_WORDS   "the last line"
#define FAKE_END          "the pod ended by itself"

/* An image that is to be plugged or unplugged. */
struct fake_job {
	bool unplug;
	int slot;
	backend_done_fn done;
	void *ctx;
};

struct backend_pod {
	bool is_early; /* takes no images yet */
	struct fake_job jobs[AGENT_APPS_MAX];
	size_t n_jobs;
	bool lost[AGENT_APPS_MAX]; /* slots that must not be used again */
	int kills, drops;
	struct loop *loop;
	struct loop_timer end;
	const struct backend_events *events;
	void *ctx;
};

/*
 * Its create() is NULL: a pod is a zeroed struct of the test, and free() leaves the memory alone.
 */
extern const struct backend fake_backend;

/* Ends the first job: with success, or with @refusal; @left as of backend_done_fn. */
void fake_backend_answer(struct backend_pod *p, const char *refusal, bool left);

/* The pod ends by itself: told from the loop. */
void fake_backend_end(struct backend_pod *p);

#endif
