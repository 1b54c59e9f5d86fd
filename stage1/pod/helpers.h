/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that serve a pod, found from outside: its supervisor knows them by pidfds,
 * whoever's children they are.
 */
#ifndef STAGE1_POD_HELPERS_H
#define STAGE1_POD_HELPERS_H

#include <stddef.h>
#include <sys/types.h>

#define POD_HELPERS_MAX 16 /* a VM has five at most: QEMU, vsock, network, libvirt or virtiofsd */

/*
 * The processes, each once, that @supervisor has pidfds of, below @proc, which is "/proc". Their
 * number; those that have ended are left out, and what is beyond POD_HELPERS_MAX.
 */
size_t pod_helpers(const char *proc, pid_t supervisor, pid_t ret[POD_HELPERS_MAX]);

#endif
