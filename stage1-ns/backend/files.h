/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the pod directory that are this flavor's alone. */
#ifndef STAGE1_NS_BACKEND_FILES_H
#define STAGE1_NS_BACKEND_FILES_H

#define NS_FILE_SOCKET "agent.sock" /* the agent listens there */
#define NS_FILE_LOCK   "pod.alive"  /* locked as long as a process of the pod lives */

#endif
