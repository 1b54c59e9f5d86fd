/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of a split virtqueue: virtio 1.2, 2.7.
 *
 * Everything in the three ring areas can be changed by the guest at any moment. Each index, length,
 * flag and address is therefore fetched exactly once into a local variable, checked there and only
 * then used; chains are bounded in length, so a loop ends; addresses are translated by
 * guest_memory_*(), which knows only shared memory. Any breach yields -EPROTO and marks the queue
 * broken: it then stays silent until virtq_init(). No value from the guest reaches an assertion.
 *
 * The queue keeps no record of chains between virtq_pop() and virtq_push(): a popped chain may be
 * given back with virtq_unpop() as if it had never been looked at.
 *
 * Memory order: virtq_pop() reads avail.idx with acquire semantics before the entries that it
 * covers; virtq_publish() stores used.idx with release semantics behind the entries that it covers,
 * then a full barrier separates that store from reading the driver's wish for a notification;
 * virtq_want_kicks() mirrors it. So either side sees the other's new index or gets an event.
 */
#ifndef STAGE1_KVM_VSOCK_VIRTQ_H
#define STAGE1_KVM_VSOCK_VIRTQ_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "stage1-kvm/vsock/memory.h"

/*
 * Entries of a queue. QEMU's vsock device asks for 128, but its virtio-mmio transport offers 1024
 * (VIRTQUEUE_MAX_SIZE) for every queue and Linux takes what is offered.
 */
#define VIRTQ_SIZE_MAX 1024

/*
 * Descriptors of one chain. The largest packet of Linux, 64 KiB in single pages behind a header,
 * takes 18; its receive buffers take one or two.
 */
#define VIRTQ_CHAIN_MAX 256

/* Room that virtq_pop() needs: a piece per descriptor, and some that lie across two regions. */
#define VIRTQ_IOV_MAX (VIRTQ_CHAIN_MAX + GUEST_MEMORY_REGIONS_MAX)

/* virtq_pop(): nothing is available. */
enum {
	VIRTQ_E_EMPTY = 1,
};

/* Where a queue is in our address space: three areas that were checked with virtq_locate(). */
struct virtq_areas {
	volatile struct vring_desc *desc;
	volatile struct vring_avail *avail;
	volatile struct vring_used *used;
};

struct virtq {
	const struct guest_memory *memory; /* borrowed */
	struct virtq_areas at;
	uint16_t size;       /* a power of two up to VIRTQ_SIZE_MAX; 0 while stopped */
	uint16_t next_avail; /* next entry of the available ring to look at */
	uint16_t seen_avail; /* avail.idx as last fetched */
	uint16_t next_used;  /* next entry of the used ring to fill */
	uint16_t published;  /* used.idx as the guest sees it */
	bool event_idx;      /* VIRTIO_RING_F_EVENT_IDX was negotiated */
	bool indirect;       /* VIRTIO_RING_F_INDIRECT_DESC was negotiated */
	bool notify_next; /* notify at the next publication, whatever the guest's event index is */
	const char *broken; /* NULL, or what the guest did wrong (static text) */
};

struct virtq_chain {
	uint16_t head;  /* for virtq_push() */
	size_t n_out;   /* entries of the caller's list that the device may read ... */
	size_t n_in;    /* ... followed by entries that it may write */
	size_t out_len; /* bytes */
	size_t in_len;  /* bytes */
};

/*
 * Translates the VMM's addresses of the three areas for a queue of @size entries. -EINVAL unless
 * @size is a power of two up to VIRTQ_SIZE_MAX, the areas are aligned (16, 2, 4) and each is inside
 * one region.
 */
int virtq_locate(const struct guest_memory *m, uint16_t size, uint64_t desc, uint64_t avail,
		 uint64_t used, struct virtq_areas *ret);

/*
 * A queue of @size entries that begins at available index @base, with the negotiated @features. It
 * has no memory yet: next come virtq_move() and virtq_start().
 */
void virtq_init(struct virtq *q, uint16_t size, uint16_t base, uint64_t features);

/*
 * Where the areas are, first or anew; the indices stay. @m must outlive the queue or be replaced.
 */
void virtq_move(struct virtq *q, const struct guest_memory *m, const struct virtq_areas *at);

/* Takes over the used index from the ring, as left there by whoever served it before. */
void virtq_start(struct virtq *q);

/*
 * Takes the next available chain and describes its pieces in @iov of @max entries, at least
 * VIRTQ_IOV_MAX. 0, VIRTQ_E_EMPTY, or -EPROTO if the guest broke the queue (now or earlier).
 */
int virtq_pop(struct virtq *q, struct iovec *iov, size_t max, struct virtq_chain *ret);

/* Gives back the last @n chains that were popped and not pushed. */
void virtq_unpop(struct virtq *q, uint16_t n);

/* Returns a chain into which @len bytes were written. The guest sees it after virtq_publish(). */
void virtq_push(struct virtq *q, uint16_t head, uint32_t len);

/* Shows the guest all pushed chains. True if the guest wants to be notified. */
bool virtq_publish(struct virtq *q);

/*
 * Asks the guest for a notification about the next available chain. True if there is one already,
 * so that the caller must look again instead of waiting.
 */
bool virtq_want_kicks(struct virtq *q);

/* Tells the guest that notifications are not needed now; only a hint, some may still come. */
void virtq_spare_kicks(struct virtq *q);

#endif
