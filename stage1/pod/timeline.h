/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a pod's start and end goes, for people (--debug) and for tools/bench. */
#ifndef STAGE1_POD_TIMELINE_H
#define STAGE1_POD_TIMELINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What every pod reaches; a backend has more. */
#define MARK_STAGE1      "stage1 started"   /* before it: stage0, images */
#define MARK_PLANNED     "planned"          /* host probed, everything to be opened is open */
#define MARK_NETWORK     "network made"     /* of a pod that has one */
#define MARK_SPAWNED     "spawned"          /* the backend's processes run */
#define MARK_AGENT       "agent up"         /* the agent accepted the secret */
#define MARK_APP_STARTED "app started"      /* the first app was started */
#define MARK_APP_EXITED  "app exited"       /* the last app has ended */
#define MARK_APP_OUTPUT  "output delivered" /* all of it */
#define MARK_WRITTEN     "all written"      /* the agent has nothing left to do */
#define MARK_GONE        "gone"             /* nothing of the pod runs any more */

#define TIMELINE_MARKS_MAX 16 /* further ones are not noted */

struct timeline {
	int64_t start_ns; /* when husk started, CLOCK_MONOTONIC */
	struct {
		const char *name;
		int64_t at_ns;
	} marks[TIMELINE_MARKS_MAX]; /* in the order in which they were reached */
	size_t n_marks;
};

/* Begins a timeline at @start_ns (CLOCK_MONOTONIC). */
void timeline_init(struct timeline *t, int64_t start_ns);

/* Notes that @name, which stays valid, is reached now; only the first time counts. */
void timeline_reach(struct timeline *t, const char *name);

/*
 * Prints one line per mark: milliseconds since the start, milliseconds since the line before, name.
 */
void timeline_print(const struct timeline *t, FILE *out);

#endif
