/* SPDX-License-Identifier: Apache-2.0 */
/* Finding pods: the one that somebody means, and all that there are. */
#ifndef HOST_POD_LIST_H
#define HOST_POD_LIST_H

#include "host/pod/info.h"
#include "host/pod/pod.h"

/*
 * The visible pod that @prefix stands for: its whole UUID, its name (host/pod/name.h), or the
 * beginning of exactly one UUID; the first of these that there is. Of UUIDs case does not matter.
 * 0, or -errno and @e: UUID cannot be empty; no matches found for "X"; ambiguous uuid, N matches.
 */
int pods_resolve(struct pods *ps, const char *prefix, struct uuid *ret, struct err *e);

/* Who hears of the pods that pods_read_all() finds. */
struct pods_reader {
	/* Another result than 0 ends it. */
	int (*pod)(void *ctx, const struct pod_info *info);
	/* That pod cannot be opened. */
	void (*problem)(void *ctx, const struct uuid *uuid, const struct err *e);
	void *ctx;
};

/*
 * Reads all visible pods of @ps, the newest first. One that goes away meanwhile is left out. 0;
 * -errno and @e, also for what @reader->pod returns.
 */
int pods_read_all(struct pods *ps, const struct pods_reader *reader, struct err *e);

#endif
