/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of pods, which people give them: DNS labels, in the file "name" of the pod's directory. No
 * two pods that are not garbage have the same.
 *
 * What may still become a pod holds its name from its preparation on: to look whether a name is
 * free and to take it is one step under a lock that all who take names share, on the directory of
 * phase prepare. A name is never changed, and goes with its pod; a pod in exited-garbage keeps it,
 * but others may have it, too.
 */
#ifndef HOST_POD_NAME_H
#define HOST_POD_NAME_H

#include <stdbool.h>

#include "host/pod/pod.h"

#define POD_NAME_MAX 63 /* bytes, of a DNS label (RFC 1123) */

/* True for 1 to 63 of a-z, 0-9 and "-", no "-" at the ends, and not the form of a whole UUID. */
bool pod_name_is_valid(const char *name);

/*
 * The name of the pod with the directory @pod_fd in @ret, "" if it has none or it cannot be read.
 */
void pod_name_read(int pod_fd, char ret[POD_NAME_MAX + 1]);

/*
 * Gives the pod @p of @ps, which is locked by us and in POD_PREPARE, the name @name, which is
 * valid. 0; -EEXIST and @e naming the pod that has it; -EBUSY and @e if somebody keeps the names
 * locked for longer than POD_LOCK_WAIT_MS; -errno and @e.
 */
int pod_name_take(struct pods *ps, const struct pod *p, const char *name, struct err *e);

/*
 * Whether @name is free as things are, for who is about to do what takes long. 0; -EEXIST as
 * pod_name_take(); -errno and @e.
 */
int pod_name_check(struct pods *ps, const char *name, struct err *e);

/*
 * The pod of @ps named @name: one that is not garbage, else the only one in exited-garbage. 0;
 * POD_GONE if there is none; -EEXIST and @e if there are several; -errno and @e.
 */
int pod_name_find(struct pods *ps, const char *name, struct uuid *ret, struct err *e);

#endif
