/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scratch disk: one sparse ext4 image per pod for all writable layers.
 *
 * mkfs.ext4 runs once per host and size, for a template; a pod's disk is a sparse copy of that, a
 * few hundred kilobytes of metadata whatever the size.
 */
#ifndef STAGE1_KVM_BACKEND_SCRATCH_H
#define STAGE1_KVM_BACKEND_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * Apparent size of a scratch disk in bytes: what the apps of a pod can write, together. Sparse:
 * only what they have written takes space on the host.
 */
#define SCRATCH_SIZE_DEFAULT (UINT64_C(4) << 30)
#define SCRATCH_SIZE_MIN     (UINT64_C(32) << 20)
#define SCRATCH_SIZE_MAX     (UINT64_C(1) << 40)

/*
 * Creates the file POD_FILE_SCRATCH in @pod_fd and opens it for reading and writing. @cache_dir is
 * a directory that may keep the template; it is created if missing. The descriptor, or -errno with
 * @e set; nothing is left behind on failure.
 */
int scratch_create(int pod_fd, const char *cache_dir, uint64_t size, struct err *e);

#endif
