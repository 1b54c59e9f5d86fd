/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespaces of virtiofsd, in steps; each is final for the process.
 */
#ifndef STAGE1_KVM_VIRTIOFS_ISOLATE_H
#define STAGE1_KVM_VIRTIOFS_ISOLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * Of root: a user namespace whose ids up to 65535 are those of the host from @base on, and all
 * others as they are; with @base 0 all. A descriptor, which is the caller's, or -errno and @e.
 */
int isolate_make_ids(uint32_t base, struct err *e);

/*
 * Of others: a user namespace in which they are root, for the privilege to mount. 0, or -errno and
 * @e.
 */
int isolate_become_root(struct err *e);

/* Gets a mount namespace of its own. 0, or -errno and @e. */
int isolate_mounts(struct err *e);

/*
 * Goes on in a child, whose end, and that of all that came of it, is that of this process, which
 * ends with the child's exit code, and until then is in a mount namespace where the root directory
 * is what is mounted on @dir, and nothing else is mounted. 0, in the child, or -errno and @e.
 */
int isolate_processes(const char *dir, struct err *e);

/*
 * Then another mount namespace, of the user namespace @ids, of which the process becomes root, or
 * with -EBADF another one; the privileges that the files of the mounts need end there. What was
 * mounted read-only stays so, whoever has all capabilities in there. And no network, no IPC. 0, or
 * -errno and @e.
 */
int isolate_privileges(int ids, struct err *e);

#endif
