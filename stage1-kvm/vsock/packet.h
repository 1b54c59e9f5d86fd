/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a virtio-vsock packet: virtio 1.2, 5.10.6 "Device Operation". Pure codec.
 */
#ifndef STAGE1_KVM_VSOCK_PACKET_H
#define STAGE1_KVM_VSOCK_PACKET_H

#include <stdint.h>

#define VSOCK_HEADER_SIZE 44 /* bytes on the wire, little-endian, packed */
#define VSOCK_CID_HOST    2

#define VSOCK_TYPE_STREAM 1 /* the only type without VIRTIO_VSOCK_F_SEQPACKET */

enum vsock_op {
	VSOCK_OP_INVALID = 0,
	VSOCK_OP_REQUEST = 1,
	VSOCK_OP_RESPONSE = 2,
	VSOCK_OP_RST = 3,
	VSOCK_OP_SHUTDOWN = 4,
	VSOCK_OP_RW = 5,
	VSOCK_OP_CREDIT_UPDATE = 6,
	VSOCK_OP_CREDIT_REQUEST = 7,
};

/* Flags of VSOCK_OP_SHUTDOWN: what the sender of the packet will not do any more. */
#define VSOCK_SHUTDOWN_RCV  1u
#define VSOCK_SHUTDOWN_SEND 2u
#define VSOCK_SHUTDOWN_BOTH (VSOCK_SHUTDOWN_RCV | VSOCK_SHUTDOWN_SEND)

struct vsock_header {
	uint64_t src_cid;
	uint64_t dst_cid;
	uint32_t src_port;
	uint32_t dst_port;
	uint32_t len; /* payload bytes behind the header */
	uint16_t type;
	uint16_t op; /* enum vsock_op, or whatever a guest writes there */
	uint32_t flags;
	uint32_t buf_alloc; /* receive buffer of the sender, bytes */
	uint32_t fwd_cnt;   /* bytes that the sender has consumed, free-running */
};

/* Reads a header. Every bit pattern is accepted: judging the fields is the caller's task. */
void vsock_header_decode(const unsigned char wire[VSOCK_HEADER_SIZE], struct vsock_header *ret);

/* Writes a header. */
void vsock_header_encode(const struct vsock_header *h, unsigned char wire[VSOCK_HEADER_SIZE]);

#endif
