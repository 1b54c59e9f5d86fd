/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stage1-kvm/vsock/guest.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/cmocka.h"

#define TX_SLOTS (GUEST_QUEUE_SIZE / 2) /* two descriptors each */

static uint64_t guest_addr(size_t offset)
{
	return GUEST_BASE + offset;
}

void guest_restart(struct guest *g)
{
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct guest_queue *q = &g->q[i];
		memset(g->mem + GUEST_AT_QUEUE(i), 0, 0x4000);
		q->next_avail = q->next_used = 0;
	}
	g->tx_in_flight = 0;
	for (uint16_t slot = 0; slot < GUEST_QUEUE_SIZE; slot++)
		guest_offer_rx(g, slot);
}

void guest_init(struct guest *g)
{
	*g = (struct guest){ .memfd = memfd_create("guest", MFD_CLOEXEC) };
	assert_true(g->memfd >= 0);
	assert_int_equal(ftruncate(g->memfd, GUEST_MEMORY), 0);
	g->mem = mmap(NULL, GUEST_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	assert_ptr_not_equal(g->mem, MAP_FAILED);
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		char *at = g->mem + GUEST_AT_QUEUE(i);
		struct guest_queue *q = &g->q[i];
		q->desc = (struct vring_desc *)(void *)at;
		q->avail = (struct vring_avail *)(void *)(at + GUEST_AT_AVAIL);
		q->used = (struct vring_used *)(void *)(at + GUEST_AT_USED);
		q->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		q->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(q->kick >= 0 && q->call >= 0);
	}
	guest_restart(g);
}

void guest_deinit(struct guest *g)
{
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		g->q[i].kick = fd_close(g->q[i].kick);
		g->q[i].call = fd_close(g->q[i].call);
	}
	munmap(g->mem, GUEST_MEMORY);
	g->memfd = fd_close(g->memfd);
}

struct guest_region guest_region(void)
{
	return (struct guest_region){ .guest_addr = GUEST_BASE,
				      .size = GUEST_MEMORY,
				      .user_addr = GUEST_USER };
}

struct device_queue_plan guest_plan(size_t i, uint16_t base)
{
	uint64_t at = GUEST_USER + GUEST_AT_QUEUE(i);
	return (struct device_queue_plan){ .size = GUEST_QUEUE_SIZE,
					   .base = base,
					   .desc = at,
					   .avail = at + GUEST_AT_AVAIL,
					   .used = at + GUEST_AT_USED,
					   .features = GUEST_FEATURES };
}

void guest_attach(struct guest *g, struct device *d)
{
	struct guest_memory m = GUEST_MEMORY_INIT;
	struct guest_region region = guest_region();
	struct err e = ERR_INIT;
	assert_int_equal(guest_memory_add(&m, &region, g->memfd, &e), 0);
	device_set_memory(d, &m);
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct device_queue_plan plan = guest_plan(i, 0);
		assert_int_equal(device_set_kick(d, i, dup(g->q[i].kick)), 0);
		assert_int_equal(device_set_call(d, i, dup(g->q[i].call)), 0);
		device_start_queue(d, i, &plan);
	}
}

static void make_available(struct guest_queue *q, uint16_t head)
{
	q->avail->ring[q->next_avail % GUEST_QUEUE_SIZE] = head;
	q->next_avail++;
	__atomic_store_n(&q->avail->idx, q->next_avail, __ATOMIC_RELEASE);
}

void guest_offer_rx(struct guest *g, uint16_t slot)
{
	struct guest_queue *q = &g->q[DEVICE_RX];
	q->desc[slot] =
		(struct vring_desc){ .addr = guest_addr(GUEST_AT_RX + slot * GUEST_RX_BUFFER),
				     .len = GUEST_RX_BUFFER,
				     .flags = VRING_DESC_F_WRITE };
	make_available(q, slot);
}

void guest_kick(struct guest *g, size_t i)
{
	uint64_t one = 1;
	assert_int_equal(write(g->q[i].kick, &one, sizeof(one)), sizeof(one));
}

/* Asks for a notification about the next used entry; true if there is one already. */
static bool want_notification(struct guest_queue *q)
{
	__atomic_store_n(&q->avail->ring[GUEST_QUEUE_SIZE], q->next_used, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->next_used;
}

/* Notes which transmissions are over; every one took a slot. */
static void reclaim_tx(struct guest *g)
{
	struct guest_queue *q = &g->q[DEVICE_TX];
	uint16_t idx = __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE);
	uint16_t n = (uint16_t)(idx - q->next_used);
	assert_true(n <= g->tx_in_flight);
	g->tx_in_flight -= n;
	q->next_used = idx;
}

bool guest_all_taken(struct guest *g)
{
	do
		reclaim_tx(g);
	while (want_notification(&g->q[DEVICE_TX]));
	return g->tx_in_flight == 0;
}

bool guest_send_raw(struct guest *g, const struct vsock_header *h, const void *payload, size_t len)
{
	struct guest_queue *q = &g->q[DEVICE_TX];
	assert_true(len <= GUEST_TX_PAYLOAD);
	do
		reclaim_tx(g);
	while (g->tx_in_flight >= TX_SLOTS && want_notification(q));
	if (g->tx_in_flight >= TX_SLOTS)
		return false;
	/* The device returns chains in order, so slots are free in order. */
	uint16_t slot = q->next_avail % TX_SLOTS;
	size_t at = GUEST_AT_TX + slot * (size_t)GUEST_TX_SLOT;
	uint16_t head = (uint16_t)(slot * 2);
	vsock_header_encode(h, (unsigned char *)g->mem + at);
	if (len > 0)
		memcpy(g->mem + at + 64, payload, len);
	q->desc[head] = (struct vring_desc){ .addr = guest_addr(at), .len = VSOCK_HEADER_SIZE };
	if (len > 0) {
		q->desc[head].flags = VRING_DESC_F_NEXT;
		q->desc[head].next = (uint16_t)(head + 1);
		q->desc[head + 1] =
			(struct vring_desc){ .addr = guest_addr(at + 64), .len = (uint32_t)len };
	}
	make_available(q, head);
	g->tx_in_flight++;
	return true;
}

bool guest_send(struct guest *g, struct guest_conn *c, enum vsock_op op, uint32_t flags,
		const void *payload, size_t len)
{
	struct vsock_header h = { .src_cid = GUEST_CID,
				  .dst_cid = VSOCK_CID_HOST,
				  .src_port = c->port,
				  .dst_port = c->host_port,
				  .len = (uint32_t)len,
				  .type = VSOCK_TYPE_STREAM,
				  .op = (uint16_t)op,
				  .flags = flags,
				  .buf_alloc = c->buf_alloc,
				  .fwd_cnt = c->fwd_cnt };
	if (!guest_send_raw(g, &h, payload, len))
		return false;
	c->tx_cnt += (uint32_t)len;
	return true;
}

bool guest_recv(struct guest *g, struct vsock_header *ret, void *payload)
{
	struct guest_queue *q = &g->q[DEVICE_RX];
	if (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) == q->next_used &&
	    !want_notification(q))
		return false;
	struct vring_used_elem e = q->used->ring[q->next_used % GUEST_QUEUE_SIZE];
	q->next_used++;
	const char *buffer = g->mem + GUEST_AT_RX + (size_t)e.id * GUEST_RX_BUFFER;
	assert_in_range(e.len, VSOCK_HEADER_SIZE, GUEST_RX_BUFFER);
	vsock_header_decode((const unsigned char *)buffer, ret);
	assert_int_equal(ret->src_cid, VSOCK_CID_HOST);
	assert_int_equal(ret->dst_cid, GUEST_CID);
	assert_int_equal(ret->type, VSOCK_TYPE_STREAM);
	assert_int_equal(ret->len, e.len - VSOCK_HEADER_SIZE);
	if (payload && ret->len > 0)
		memcpy(payload, buffer + VSOCK_HEADER_SIZE, ret->len);
	guest_offer_rx(g, (uint16_t)e.id);
	return true;
}

void guest_conn_note(struct guest_conn *c, const struct vsock_header *h)
{
	c->peer_alloc = h->buf_alloc;
	c->peer_fwd = h->fwd_cnt;
}

struct guest_conn guest_accept(struct guest *g, const struct vsock_header *request,
			       uint32_t buf_alloc)
{
	struct guest_conn c = { .port = request->dst_port,
				.host_port = request->src_port,
				.buf_alloc = buf_alloc };
	assert_int_equal(request->op, VSOCK_OP_REQUEST);
	guest_conn_note(&c, request);
	assert_true(guest_send(g, &c, VSOCK_OP_RESPONSE, 0, NULL, 0));
	return c;
}

uint32_t guest_conn_credit(const struct guest_conn *c)
{
	return c->peer_alloc - (c->tx_cnt - c->peer_fwd);
}
