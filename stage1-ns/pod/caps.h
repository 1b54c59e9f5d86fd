/* SPDX-License-Identifier: Apache-2.0 */
/* What root in a pod without a user namespace, who is root of the host, is left. */
#ifndef STAGE1_NS_POD_CAPS_H
#define STAGE1_NS_POD_CAPS_H

/*
 * Drops from the bounding set all capabilities that the agent does not need and that reach beyond
 * the pod's namespaces: for modules, the clock, raw I/O, files by handle, logs, security modules.
 * Counts from the next execve(2) on. 0 or -errno.
 */
int caps_bound(void);

#endif
