/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces of the host as what a pod is made of (stage1/backend.h). */
#ifndef STAGE1_NS_BACKEND_BACKEND_H
#define STAGE1_NS_BACKEND_BACKEND_H

#include "stage1/backend.h"

/* Files of the pod directory that are this flavor's. */
#define NS_FILE_SOCKET "agent.sock" /* the agent listens there */
#define NS_FILE_LOCK   "pod.alive"  /* locked as long as a process of the pod lives */
#define NS_DIR_SCRATCH "scratch"    /* what apps write: APP/upper */

extern const struct backend ns_backend;

#endif
