/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of pods: collecting what has ended, removing what somebody names.
 *
 * Everything here may run in any number of processes at once, beside all other commands: who comes
 * second at a pod leaves it alone.
 */
#ifndef HOST_POD_GC_H
#define HOST_POD_GC_H

#include <stdbool.h>
#include <stdint.h>

#include "host/launch/stage1.h"
#include "host/pod/pod.h"

/* What the collection does to a pod; told before or after as the name says. */
enum gc_event {
	GC_MARKED_EXITED,  /* its supervisor has ended: moved to exited-garbage */
	GC_MARKED_ABORTED, /* its creator died: moved to garbage */
	GC_MARKED_EXPIRED, /* prepared for too long: moved to garbage */
	GC_KEPT,           /* exited, but still within the grace period */
	GC_COLLECTING,     /* will be deleted */
	GC_FAILED,         /* something failed; the struct err says what */
};

struct gc {
	struct pods *ps;
	int64_t now_ns;    /* CLOCK_REALTIME */
	int64_t grace_ns;  /* since a pod was found to have ended, until it is deleted */
	int64_t expire_ns; /* since a pod was prepared, until it is given up */
	bool mark_only;
	/* @e is NULL but for GC_FAILED. */
	void (*tell)(void *ctx, enum gc_event event, const struct pod *p, const struct err *e);
	/*
	 * Lets stage1 clean up what it left outside the pod directory; called for every pod that
	 * has run, with our lock: when it is marked, unless it is deleted in the same run (@stays),
	 * and before it is deleted. 0; or -errno and @e, which is told and keeps the pod.
	 */
	int (*stage1_gc)(void *ctx, const struct pod *p, bool stays, struct err *e);
	void *ctx;
};

/*
 * Has @s clean up what it left of the pod outside of its directory, if it can: what stage1_gc of a
 * struct gc does when it has found the pod's stage1. A stage1 of rkt's knows nothing of pods that
 * stay. 0, or -errno and @e.
 */
int pod_stage1_gc(const struct pod *p, const struct stage1 *s, bool stays, bool debug,
		  struct err *e);

/*
 * Marks what has ended or was given up; unless gc->mark_only, deletes what may be deleted. A pod
 * that fails is told and skipped. 0, or -errno and @e if the pods cannot even be listed.
 */
int pods_gc(const struct gc *gc, struct err *e);

/*
 * Removes one pod, whose state must allow it; grace and expiry do not count. 0; -EBUSY and @e if it
 * runs, is being prepared, or somebody else deletes it; -errno and @e.
 */
int pod_remove(const struct gc *gc, struct pod *p, struct err *e);

#endif
