/* SPDX-License-Identifier: Apache-2.0 */
/* husk-net (stage1/net), called by an entrypoint about the pod in the working directory. */
#ifndef STAGE1_ENTRY_HUSK_NET_H
#define STAGE1_ENTRY_HUSK_NET_H

/*
 * Has it do @action, an option of its, and waits. What it says goes to @said_fd. 0, *ret_code is
 * its exit code; or -errno if it could not be called or was killed.
 */
int husk_net_call(const char *uuid, const char *action, int said_fd, int *ret_code);

#endif
