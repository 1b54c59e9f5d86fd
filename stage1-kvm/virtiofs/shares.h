/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory that virtiofsd serves: a mount for each volume, and nothing else but a directory,
 * AGENT_HOST_APPS, in which there will be those of apps that come later. What is mounted in there
 * by somebody who has the privileges for that appears in all mount namespaces that were made of
 * the one of shares_mount().
 */
#ifndef STAGE1_KVM_VIRTIOFS_SHARES_H
#define STAGE1_KVM_VIRTIOFS_SHARES_H

#include <stddef.h>

#include "lib/base/err.h"
#include "stage1/volumes/host_volume.h"

/* Where the directory is: every system has it, no program is in there, and it is not needed. */
#define SHARES_DIR "/sys"

/*
 * Makes the directory, read-only itself, in the mount namespace of the calling process, which is
 * its own, with all of the @n @volumes in it. Their files have the same owners in the user
 * namespace @ids as they have on the host; -EBADF: as anywhere. 0, or -errno and @e.
 */
int shares_mount(const struct host_volume *volumes, size_t n, int ids, struct err *e);

#endif
