/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the root of an app, whatever it has put there. */
#ifndef GUEST_AGENT_APP_IN_ROOT_H
#define GUEST_AGENT_APP_IN_ROOT_H

/*
 * Opens @path as a process whose root directory is @root would, with the @flags of open(2); what
 * O_CREAT makes has mode 0644. Links into /proc do not count: with our privileges, /proc/1/root is
 * the way into the agent's own root. The descriptor or -errno.
 */
int open_in_root(int root, const char *path, int flags);

#endif
