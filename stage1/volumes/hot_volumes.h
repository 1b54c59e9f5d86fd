/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes of the host that an app brings into a pod that runs. A process of the pod has them: who
 * serves them to a VM, or the agent of a pod of namespaces. They are mounted there from outside, by
 * who asks for the app and with what that one may do, and are gone with the app. What apps of
 * root's pods bring that is the same, and used in the same way, is one file system to them.
 */
#ifndef STAGE1_VOLUMES_HOT_VOLUMES_H
#define STAGE1_VOLUMES_HOT_VOLUMES_H

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * A descriptor of who has them that leads to the user namespace in which their files have the
 * owners that they have on the host. Not open: they have them anyway.
 */
#define HOT_VOLUMES_IDS_FD  10
#define HOT_VOLUMES_OWN_IDS (-1) /* instead: if root starts the pod, that is its own */

/* Where a flavor has them. */
struct volume_keeper {
	const char *process;     /* its name (comm of proc(5)), started by the supervisor */
	const char *dir;         /* in its root directory; a directory for each app in there */
	int ids_fd;              /* one of the above */
	const char *otherwise;   /* for people: what it means that there is no such process */
	const char *without_ids; /* and the option with which a file system needs no mapped ids */
	int turn_ms;             /* how long one waits for others who do this; 0: as is usual */
};

/*
 * Mounts the volumes of the host that are @app's own in the pod of the working directory, which
 * must be the caller's and closed to others. 0, or -errno and @e: -ESRCH if the pod has ended,
 * -EPERM if the directory is not, -EOPNOTSUPP if the pod has nobody who has volumes, or a file
 * system cannot be used, -EBUSY if somebody else does that too long, -EEXIST if the app has some. A
 * part of them may be there after a failure.
 */
int hot_volumes_attach(const struct volume_keeper *keeper, const struct pod_app *app,
		       struct err *e);

/*
 * Unmounts what is there of them and no other app has; in a pod that has ended nothing is. Can be
 * repeated. 0, or -errno and @e: -EBUSY as above.
 */
int hot_volumes_detach(const struct volume_keeper *keeper, const struct pod_app *app,
		       struct err *e);

#endif
