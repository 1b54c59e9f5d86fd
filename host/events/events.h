/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching pods: what happens to them as a sequence of events, from the files that they are.
 *
 * Guaranteed: every event of a pod or app is told, once and in the order of its pod, if what it
 * left in the file system was still there when it was looked at; a watcher that is not held up
 * looks within milliseconds. Changes that follow each other faster, or while the watcher is held
 * up, are told as one where they hide each other (event_state.h). Between pods there is no order. A
 * queue of changes that overflows in the kernel costs no event that still shows.
 *
 * The watcher holds no lock and changes nothing. It probes the lock of a pod in run, as listings
 * do: when it begins to watch the pod, and when its supervisor is gone.
 */
#ifndef HOST_EVENTS_EVENTS_H
#define HOST_EVENTS_EVENTS_H

#include <stdbool.h>

#include "host/events/event_state.h"
#include "host/pod/pod.h"
#include "lib/base/err.h"
#include "lib/os/loop.h"

/* How often a pod is looked at whose end nobody would tell of: see events.c. */
#define POD_EVENTS_POLL_MS 100

struct pod_events;

struct pod_events_request {
	const struct uuid *only; /* this pod, until its end; NULL: all pods, for ever */
	size_t max;              /* of pods that are watched: POD_LIST_MAX or less */
	bool replay;             /* begin with what has happened to the pods that are there */
	/* Takes one event. 0; else the watcher ends, without failure. */
	int (*event)(void *ctx, const struct uuid *pod, const struct pod_event *ev);
	/*
	 * What happened before has been told; everything from here on is new. Results as of
	 * event().
	 */
	int (*live)(void *ctx);
	/* A pod cannot be watched, as @e says; told once. */
	void (*problem)(void *ctx, const struct err *e);
	void *ctx;
};

/*
 * Begins to watch the pods of @ps, all of whose phase directories must be there, in the loop @l.
 * Both must outlive the watcher. What there is to replay is told before this returns. The loop
 * quits when the watcher ends; see pod_events_result(). 0, or -errno and @e.
 */
int pod_events_new(struct loop *l, struct pods *ps, const struct pod_events_request *q,
		   struct pod_events **ret, struct err *e);

/* Accepts NULL. */
void pod_events_free(struct pod_events *pe);

/*
 * Looks at once at the pods that are looked at every POD_EVENTS_POLL_MS: for who knows that one of
 * them has ended.
 */
void pod_events_look(struct pod_events *pe);

/* True if there is nothing more to tell: the only pod is over, a callback said so, or a failure. */
bool pod_events_are_over(const struct pod_events *pe);

/* 0, or -errno and @e if the watcher ended because it failed. */
int pod_events_result(const struct pod_events *pe, struct err *e);

#endif
