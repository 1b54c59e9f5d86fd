/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's traffic control (tc(8)), as far as it lets a program judge all frames of an
 * interface, in the network namespace that the caller is in.
 */
#ifndef STAGE1_NET_TRAFFIC_H
#define STAGE1_NET_TRAFFIC_H

#include <stdbool.h>

#include "lib/base/err.h"

enum traffic {
	TRAFFIC_IN,  /* what the interface receives: of a tap, what the pod sends */
	TRAFFIC_OUT, /* what is sent by it */
};

/* Makes the interface with @index ready for that. 0; -EEXIST if somebody has done so; -errno. */
int traffic_prepare(unsigned index);

/*
 * Has the eBPF program @program (BPF_PROG_TYPE_SCHED_CLS) judge all @direction of the interface
 * with @index, called @name for people, before what others have attached there. 0; 1 if it had to
 * be prepared for that; or -errno and @e: -EEXIST if it has one of ours.
 */
int traffic_judge(unsigned index, const char *name, enum traffic direction, int program,
		  struct err *e);

/*
 * Takes such a program away; with @is_prepared, as traffic_judge() has said, all that makes it
 * possible, too. 0, also if there is none, or -errno.
 */
int traffic_release(unsigned index, enum traffic direction, bool is_prepared);

#endif
