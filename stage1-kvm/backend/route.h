/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a pod directory says how the guest's vsock is reached; flavor_route of stage1/backend.h
 * goes by it. Private to stage1-kvm.
 */
#ifndef STAGE1_KVM_BACKEND_ROUTE_H
#define STAGE1_KVM_BACKEND_ROUTE_H

#define ROUTE_FILE_SOCKET "vsock.sock" /* host side of the guest's vsock: "CONNECT PORT\n" */
#define ROUTE_FILE_CID    "vsock.cid"  /* instead of it, decimal: the guest's CID */

#define ROUTE_LINE_MAX 32 /* "OK 4294967295\n" is 14 bytes */

/* How long the kernel waits for a guest that neither accepts nor refuses. */
#define ROUTE_TIMEOUT_S 30

#endif
