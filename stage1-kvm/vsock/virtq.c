/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/virtq.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>

#define DESC_ALIGN  16
#define AVAIL_ALIGN 2
#define USED_ALIGN  4

/* A table of descriptors: the queue's own, or an indirect one. */
struct table {
	const volatile struct vring_desc *desc;
	uint32_t n;
	bool is_indirect;
};

/* A walk along one chain. */
struct walk {
	struct table table;
	uint32_t next; /* index in the table, unchecked */
	struct iovec *iov;
	size_t max;
	struct virtq_chain chain;
};

/* Each of these is exactly one access to memory that the guest may be writing to. */
static uint16_t fetch16(const volatile __virtio16 *p)
{
	return le16toh(__atomic_load_n(p, __ATOMIC_RELAXED));
}

static uint16_t fetch16_acquire(const volatile __virtio16 *p)
{
	return le16toh(__atomic_load_n(p, __ATOMIC_ACQUIRE));
}

static struct vring_desc fetch_desc(const volatile struct vring_desc *p)
{
	return (struct vring_desc){ .addr = le64toh(p->addr),
				    .len = le32toh(p->len),
				    .flags = le16toh(p->flags),
				    .next = le16toh(p->next) };
}

static int virtq_fail(struct virtq *q, const char *what)
{
	q->broken = what;
	return -EPROTO;
}

static void *locate_area(const struct guest_memory *m, uint64_t addr, uint64_t len, uint64_t align)
{
	void *p = guest_memory_at_user(m, addr, len);
	return (uintptr_t)p % align == 0 ? p : NULL;
}

int virtq_locate(const struct guest_memory *m, uint16_t size, uint64_t desc, uint64_t avail,
		 uint64_t used, struct virtq_areas *ret)
{
	if (size == 0 || size > VIRTQ_SIZE_MAX || (size & (size - 1)) != 0)
		return -EINVAL;
	struct virtq_areas at;
	uint64_t n = size;
	/* Both rings end with the other side's event index. */
	at.desc = locate_area(m, desc, n * sizeof(struct vring_desc), DESC_ALIGN);
	at.avail = locate_area(m, avail, sizeof(struct vring_avail) + (n + 1) * sizeof(__virtio16),
			       AVAIL_ALIGN);
	at.used = locate_area(m, used,
			      sizeof(struct vring_used) + n * sizeof(struct vring_used_elem) +
				      sizeof(__virtio16),
			      USED_ALIGN);
	if (!at.desc || !at.avail || !at.used)
		return -EINVAL;
	*ret = at;
	return 0;
}

void virtq_init(struct virtq *q, uint16_t size, uint16_t base, uint64_t features)
{
	*q = (struct virtq){
		.size = size,
		.next_avail = base,
		.seen_avail = base,
		.event_idx = features & (UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX),
		.indirect = features & (UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC),
		.notify_next = true,
	};
}

void virtq_move(struct virtq *q, const struct guest_memory *m, const struct virtq_areas *at)
{
	q->memory = m;
	q->at = *at;
}

void virtq_start(struct virtq *q)
{
	q->next_used = q->published = fetch16(&q->at.used->idx);
}

/* Brings seen_avail up to date. */
static int look_for_more(struct virtq *q)
{
	uint16_t idx = fetch16_acquire(&q->at.avail->idx);
	if ((uint16_t)(idx - q->next_avail) > q->size)
		return virtq_fail(q, "available index is ahead by more than the queue size");
	q->seen_avail = idx;
	return idx == q->next_avail ? VIRTQ_E_EMPTY : 0;
}

/* Continues the walk in an indirect table: 2.7.5.3. */
static int enter_indirect(struct virtq *q, struct walk *w, const struct vring_desc *d)
{
	if (!q->indirect)
		return virtq_fail(q, "indirect descriptor without the feature");
	if (w->table.is_indirect)
		return virtq_fail(q, "indirect table inside an indirect table");
	if (d->flags & VRING_DESC_F_NEXT)
		return virtq_fail(q, "indirect descriptor with a successor");
	uint32_t n = d->len / (uint32_t)sizeof(struct vring_desc);
	if (n == 0 || d->len % sizeof(struct vring_desc) != 0 || n > VIRTQ_CHAIN_MAX)
		return virtq_fail(q, "indirect table of a wrong size");
	const volatile struct vring_desc *desc = guest_memory_at(q->memory, d->addr, d->len);
	if (!desc)
		return virtq_fail(q, "indirect table outside of memory");
	w->table = (struct table){ .desc = desc, .n = n, .is_indirect = true };
	w->next = 0;
	return 0;
}

static int add_buffer(struct virtq *q, struct walk *w, const struct vring_desc *d)
{
	bool in = d->flags & VRING_DESC_F_WRITE;
	if (!in && w->chain.n_in > 0)
		return virtq_fail(q, "readable descriptor behind a writable one");
	size_t used = w->chain.n_out + w->chain.n_in;
	size_t n;
	if (guest_memory_iov(q->memory, d->addr, d->len, w->iov + used, w->max - used, &n) < 0)
		return virtq_fail(q, "buffer outside of memory or in too many pieces");
	if (in) {
		w->chain.n_in += n;
		w->chain.in_len += d->len;
	} else {
		w->chain.n_out += n;
		w->chain.out_len += d->len;
	}
	return 0;
}

/* The number of steps is bounded, so a chain that loops ends as one that is too long. */
static int walk_chain(struct virtq *q, struct walk *w)
{
	for (unsigned step = 0; step <= VIRTQ_CHAIN_MAX; step++) {
		if (w->next >= w->table.n)
			return virtq_fail(q, "descriptor index beyond its table");
		struct vring_desc d = fetch_desc(&w->table.desc[w->next]);
		int r;
		if (d.flags & VRING_DESC_F_INDIRECT) {
			r = enter_indirect(q, w, &d);
			if (r < 0)
				return r;
			continue;
		}
		r = add_buffer(q, w, &d);
		if (r < 0)
			return r;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		w->next = d.next;
	}
	return virtq_fail(q, "descriptor chain too long or looping");
}

int virtq_pop(struct virtq *q, struct iovec *iov, size_t max, struct virtq_chain *ret)
{
	if (q->broken)
		return -EPROTO;
	if (q->seen_avail == q->next_avail) {
		int r = look_for_more(q);
		if (r != 0)
			return r;
	}
	uint16_t head = fetch16(&q->at.avail->ring[q->next_avail & (q->size - 1)]);
	if (head >= q->size)
		return virtq_fail(q, "head of a chain beyond the queue");
	struct walk w = { .table = { .desc = q->at.desc, .n = q->size },
			  .next = head,
			  .iov = iov,
			  .max = max,
			  .chain = { .head = head } };
	int r = walk_chain(q, &w);
	if (r < 0)
		return r;
	q->next_avail++;
	*ret = w.chain;
	return 0;
}

void virtq_unpop(struct virtq *q, uint16_t n)
{
	q->next_avail = (uint16_t)(q->next_avail - n);
}

void virtq_push(struct virtq *q, uint16_t head, uint32_t len)
{
	volatile struct vring_used_elem *e = &q->at.used->ring[q->next_used & (q->size - 1)];
	e->id = htole32(head);
	e->len = htole32(len);
	q->next_used++;
}

bool virtq_publish(struct virtq *q)
{
	uint16_t old = q->published;
	if (q->next_used == old)
		return false;
	__atomic_store_n(&q->at.used->idx, htole16(q->next_used), __ATOMIC_RELEASE);
	q->published = q->next_used;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (q->notify_next) {
		q->notify_next = false;
		return true;
	}
	if (q->event_idx)
		return vring_need_event(fetch16(&q->at.avail->ring[q->size]), q->next_used, old);
	return !(fetch16(&q->at.avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
}

/* The driver's event field behind the used ring: it follows an array, hence the address. */
static volatile __virtio16 *avail_event(struct virtq *q)
{
	return (volatile __virtio16 *)(volatile void *)&q->at.used->ring[q->size];
}

bool virtq_want_kicks(struct virtq *q)
{
	if (q->broken)
		return false;
	if (q->event_idx)
		__atomic_store_n(avail_event(q), htole16(q->next_avail), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&q->at.used->flags, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return fetch16(&q->at.avail->idx) != q->next_avail;
}

void virtq_spare_kicks(struct virtq *q)
{
	/* With event indices the last wish is in the past already. */
	if (!q->broken && !q->event_idx)
		__atomic_store_n(&q->at.used->flags, htole16(VRING_USED_F_NO_NOTIFY),
				 __ATOMIC_RELAXED);
}
