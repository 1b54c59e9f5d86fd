/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest for the tests of the vsock device: memory in a memfd, the driver's side of the two
 * virtqueues, and as much of the vsock protocol as a well-behaved peer needs. Tests that want a
 * badly behaved one write to the memory themselves.
 */
#ifndef TESTS_UNIT_STAGE1_KVM_VSOCK_GUEST_H
#define TESTS_UNIT_STAGE1_KVM_VSOCK_GUEST_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage1-kvm/vsock/device.h"
#include "stage1-kvm/vsock/memory.h"
#include "stage1-kvm/vsock/packet.h"

#define GUEST_CID  7u
#define GUEST_BASE UINT64_C(0x40000000)     /* guest-physical */
#define GUEST_USER UINT64_C(0x7f1200000000) /* in the VMM */

#define GUEST_QUEUE_SIZE 128
#define GUEST_RX_BUFFER  4096
#define GUEST_TX_PAYLOAD (64u << 10)
#define GUEST_TX_SLOT    (GUEST_TX_PAYLOAD + 4096)

/* Offsets in the memory. */
#define GUEST_AT_QUEUE(i) ((size_t)(i)*0x4000)
#define GUEST_AT_AVAIL    0x1000
#define GUEST_AT_USED     0x2000
#define GUEST_AT_RX       0x10000
#define GUEST_AT_TX       (GUEST_AT_RX + GUEST_QUEUE_SIZE * GUEST_RX_BUFFER)
#define GUEST_MEMORY      ((size_t)(GUEST_AT_TX + GUEST_QUEUE_SIZE / 2 * GUEST_TX_SLOT))

/* VIRTIO_F_VERSION_1, with indirect descriptors and event indices. */
#define GUEST_FEATURES                                                    \
	((UINT64_C(1) << 32) | (UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX) | \
	 (UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC))

struct guest_queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t next_avail;
	uint16_t next_used;
	int kick; /* ours, the device gets duplicates */
	int call;
};

struct guest {
	int memfd;
	char *mem;
	struct guest_queue q[DEVICE_QUEUES];
	unsigned tx_in_flight;
};

/* The guest's end of one connection. */
struct guest_conn {
	uint32_t port;
	uint32_t host_port;
	uint32_t buf_alloc;
	uint32_t fwd_cnt;
	uint32_t tx_cnt;
	uint32_t peer_alloc;
	uint32_t peer_fwd;
};

/* Asserts inside; all receive buffers are offered. */
void guest_init(struct guest *g);
void guest_deinit(struct guest *g);

/* Forgets all state of the driver as after a reset of the guest. */
void guest_restart(struct guest *g);

/* The region as the VMM describes it. */
struct guest_region guest_region(void);

/* Where queue @i is, for a queue that begins at @base. */
struct device_queue_plan guest_plan(size_t i, uint16_t base);

/* Starts queues, memory and notifications on a device of this process. */
void guest_attach(struct guest *g, struct device *d);

/* Offers one receive buffer again. */
void guest_offer_rx(struct guest *g, uint16_t slot);

/* Tells the device that queue @i has news. */
void guest_kick(struct guest *g, size_t i);

/* True if the device has returned all that was sent. It will notify when it returns more. */
bool guest_all_taken(struct guest *g);

/*
 * Sends a packet; CIDs, type and lengths are filled in. False if all slots are in flight. Does not
 * kick. @chain_len_extra is added to the length in the header, to lie about it.
 */
bool guest_send_raw(struct guest *g, const struct vsock_header *h, const void *payload, size_t len);
bool guest_send(struct guest *g, struct guest_conn *c, enum vsock_op op, uint32_t flags,
		const void *payload, size_t len);

/*
 * The next packet from the device, if there is one. The payload, of at most a receive buffer, is
 * copied to @payload. The buffer is offered again.
 */
bool guest_recv(struct guest *g, struct vsock_header *ret, void *payload);

/* Takes over the device's credit from a packet. */
void guest_conn_note(struct guest_conn *c, const struct vsock_header *h);

/* Answers a REQUEST: the connection is open on our side, with @buf_alloc bytes of buffer. */
struct guest_conn guest_accept(struct guest *g, const struct vsock_header *request,
			       uint32_t buf_alloc);

/* How many bytes the device lets us send. */
uint32_t guest_conn_credit(const struct guest_conn *c);

#endif
