/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a pod's start and end goes, for people (--debug) and for tools/bench. */
#ifndef STAGE1_KVM_RUN_TIMELINE_H
#define STAGE1_KVM_RUN_TIMELINE_H

#include <stdint.h>
#include <stdio.h>

enum timeline_mark {
	MARK_STAGE1,      /* stage1's first instruction; before it: stage0, images */
	MARK_PLANNED,     /* host probed, VM planned, scratch disk made */
	MARK_SPAWNED,     /* husk-vsock and QEMU are running */
	MARK_QMP,         /* QEMU answers */
	MARK_KERNEL,      /* first line of the guest kernel */
	MARK_AGENT,       /* the agent accepted the secret */
	MARK_APP_STARTED, /* the first app was started */
	MARK_APP_EXITED,  /* the last app has ended */
	MARK_APP_OUTPUT,  /* all output was delivered */
	MARK_GUEST_DOWN,  /* the scratch disk is complete */
	MARK_VM_GONE,     /* QEMU has ended */
	MARK_COUNT_,
};

struct timeline {
	int64_t start_ns;           /* when husk started, CLOCK_MONOTONIC */
	int64_t at_ns[MARK_COUNT_]; /* 0: not reached */
};

/* Begins a timeline at @start_ns (CLOCK_MONOTONIC). */
void timeline_init(struct timeline *t, int64_t start_ns);

/* Notes that @mark is reached now; only the first time counts. */
void timeline_reach(struct timeline *t, enum timeline_mark mark);

/*
 * Prints one line per mark that was reached: milliseconds since the start, milliseconds since the
 * line before, name.
 */
void timeline_print(const struct timeline *t, FILE *out);

#endif
