/* SPDX-License-Identifier: Apache-2.0 */
/* The host kernel's vhost-vsock device: a guest's vsock without a process of ours. */
#ifndef STAGE1_KVM_HOSTFACTS_VHOST_H
#define STAGE1_KVM_HOSTFACTS_VHOST_H

#include <stdint.h>

#define VHOST_VSOCK_DEVICE "/dev/vhost-vsock"

/* CIDs tried before giving up; of four thousand million, one is rarely taken. */
#define VHOST_CLAIM_TRIES_MAX 1024

/*
 * Claims a CID for the open device @fd: one that @first leads to, or the next that no other user
 * has (the kernel refuses a CID that is taken, so this cannot race). It stays claimed until the
 * last descriptor of the device is closed. QEMU, which gets the descriptor, claims the same CID
 * again, which the kernel allows. 0 with the CID in *ret, -EADDRINUSE if all that were tried are
 * taken, else -errno (-ENOTTY: no such device).
 */
int vhost_claim_cid(int fd, uint32_t first, uint32_t *ret);

#endif
