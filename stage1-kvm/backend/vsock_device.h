/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vsock of a guest, on the host: a husk-vsock process of its own, or the kernel's device with a
 * CID claimed on it. Leaves in the pod directory what the route to the agent goes by (route.h).
 */
#ifndef STAGE1_KVM_BACKEND_VSOCK_DEVICE_H
#define STAGE1_KVM_BACKEND_VSOCK_DEVICE_H

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1/backend.h"
#include "stage1/pod/process.h"

/*
 * Starts husk-vsock, the program beside ours, as @p, with its end @vhost of the vhost-user channel
 * (vsock_ends() of struct vmm_driver). 0, or -errno and @e.
 */
int vsock_device_start(struct process *p, struct loop *loop, const struct backend_input *in,
		       int vhost, process_end_fn on_end, void *ctx, struct err *e);

/*
 * Notes the CID @cid, claimed on @device (/dev/vhost-vsock). A duplicate of it, or -errno and @e.
 */
int vsock_device_of_kernel(int pod_fd, int device, uint32_t cid, struct err *e);

/* Takes out of the pod directory what these left there. */
void vsock_device_forget(int pod_fd);

#endif
