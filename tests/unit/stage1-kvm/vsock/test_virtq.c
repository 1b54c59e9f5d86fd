/* SPDX-License-Identifier: Apache-2.0 */
/* Split virtqueues: every way in which a guest can break one, and the index arithmetic. */
#include "stage1-kvm/vsock/virtq.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/unit/stage1-kvm/vsock/guest.h"

#define N        GUEST_QUEUE_SIZE
#define INDIRECT (GUEST_AT_TX) /* an indirect table in the tests' memory */
#define BUFFER   (GUEST_BASE + GUEST_AT_RX)
#define W        VRING_DESC_F_WRITE
#define NEXT     VRING_DESC_F_NEXT
#define IND      VRING_DESC_F_INDIRECT

struct bench {
	struct guest guest;
	struct guest_memory memory;
	struct virtq_areas at;
	struct virtq vq;
	struct guest_queue *q; /* the tx queue, which the guest helper leaves empty */
};

static void bench_init(struct bench *b, uint16_t base, uint64_t features)
{
	struct guest_region region = guest_region();
	struct device_queue_plan p = guest_plan(DEVICE_TX, base);
	struct err e = ERR_INIT;
	guest_init(&b->guest);
	b->memory = GUEST_MEMORY_INIT;
	assert_int_equal(guest_memory_add(&b->memory, &region, b->guest.memfd, &e), 0);
	assert_int_equal(virtq_locate(&b->memory, p.size, p.desc, p.avail, p.used, &b->at), 0);
	b->q = &b->guest.q[DEVICE_TX];
	b->q->avail->idx = base;
	b->q->used->idx = base;
	virtq_init(&b->vq, p.size, base, features);
	virtq_move(&b->vq, &b->memory, &b->at);
	virtq_start(&b->vq);
}

static void bench_deinit(struct bench *b)
{
	guest_memory_deinit(&b->memory);
	guest_deinit(&b->guest);
}

static void set_desc(struct vring_desc *d, uint64_t addr, uint32_t len, unsigned flags,
		     uint16_t next)
{
	*d = (struct vring_desc){
		.addr = addr, .len = len, .flags = (uint16_t)flags, .next = next
	};
}

static void offer(struct bench *b, uint16_t head)
{
	b->q->avail->ring[b->q->avail->idx % N] = head;
	b->q->avail->idx++;
}

static int pop(struct bench *b, struct virtq_chain *chain)
{
	struct iovec iov[VIRTQ_IOV_MAX];
	return virtq_pop(&b->vq, iov, VIRTQ_IOV_MAX, chain);
}

static void test_locate(void **state)
{
	static const struct {
		uint64_t size;
		uint64_t desc, avail, used; /* relative to the memory */
		int64_t expect;
	} cases[] = {
		{ 128, 0, 0x1000, 0x2000, 0 },
		{ 1, 0, 0x1000, 0x2000, 0 },
		{ VIRTQ_SIZE_MAX, 0, 0x4000, 0x8000, 0 },
		{ 0, 0, 0x1000, 0x2000, -EINVAL },
		{ 3, 0, 0x1000, 0x2000, -EINVAL },
		{ VIRTQ_SIZE_MAX * UINT64_C(2), 0, 0x8000, 0x10000, -EINVAL },
		{ 128, 8, 0x1000, 0x2000, -EINVAL }, /* alignments */
		{ 128, 0, 0x1001, 0x2000, -EINVAL },
		{ 128, 0, 0x1000, 0x2002, -EINVAL },
		/* the last place where each area fits, and one step beyond */
		{ 128, GUEST_MEMORY - 2048, 0x1000, 0x2000, 0 },
		{ 128, GUEST_MEMORY - 2032, 0x1000, 0x2000, -EINVAL },
		{ 128, 0, GUEST_MEMORY - 262, 0x2000, 0 },
		{ 128, 0, GUEST_MEMORY - 260, 0x2000, -EINVAL },
		{ 128, 0, 0x1000, GUEST_MEMORY - 1032, 0 },
		{ 128, 0, 0x1000, GUEST_MEMORY - 1028, -EINVAL },
		{ 128, GUEST_MEMORY, 0x1000, 0x2000, -EINVAL },
		{ 128, UINT64_MAX - 15, 0x1000, 0x2000, -EINVAL },
	};
	struct bench b;
	(void)state;
	bench_init(&b, 0, GUEST_FEATURES);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct virtq_areas at;
		assert_int_equal(
			virtq_locate(&b.memory, (uint16_t)cases[i].size, GUEST_USER + cases[i].desc,
				     GUEST_USER + cases[i].avail, GUEST_USER + cases[i].used, &at),
			cases[i].expect);
	}
	bench_deinit(&b);
}

static void test_direct_chain(void **state)
{
	struct bench b;
	struct iovec iov[VIRTQ_IOV_MAX];
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 65535, GUEST_FEATURES); /* indices wrap in this test */
	set_desc(&b.q->desc[5], BUFFER, 44, NEXT, 9);
	set_desc(&b.q->desc[9], BUFFER + 100, 0, NEXT, 2); /* empty: allowed, no piece */
	set_desc(&b.q->desc[2], BUFFER + 100, 10, NEXT, 0);
	set_desc(&b.q->desc[0], BUFFER + 200, 30, W, 77);
	assert_int_equal(pop(&b, &c), VIRTQ_E_EMPTY);
	offer(&b, 5);
	offer(&b, 0);
	assert_int_equal(virtq_pop(&b.vq, iov, VIRTQ_IOV_MAX, &c), 0);
	assert_int_equal(c.head, 5);
	assert_int_equal(c.n_out, 2);
	assert_int_equal(c.out_len, 54);
	assert_int_equal(c.n_in, 1);
	assert_int_equal(c.in_len, 30);
	assert_ptr_equal(iov[1].iov_base, b.memory.host[0] + GUEST_AT_RX + 100);
	assert_int_equal(pop(&b, &c), 0);
	assert_int_equal(c.head, 0);
	assert_int_equal(pop(&b, &c), VIRTQ_E_EMPTY);
	assert_null(b.vq.broken);
	bench_deinit(&b);
}

static void test_indirect_chain(void **state)
{
	struct bench b;
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 0, GUEST_FEATURES);
	struct vring_desc *table = (struct vring_desc *)(void *)(b.guest.mem + INDIRECT);
	set_desc(&b.q->desc[0], BUFFER, 44, NEXT, 1);
	set_desc(&b.q->desc[1], GUEST_BASE + INDIRECT, 32, IND, 0);
	set_desc(&table[0], BUFFER, 7, NEXT, 1);
	set_desc(&table[1], BUFFER, 9, W, 0);
	offer(&b, 0);
	assert_int_equal(pop(&b, &c), 0);
	assert_int_equal(c.out_len, 51);
	assert_int_equal(c.in_len, 9);
	bench_deinit(&b);
}

/* A chain of @n descriptors in an indirect table. */
static int pop_long_chain(size_t n)
{
	struct bench b;
	struct virtq_chain c;
	bench_init(&b, 0, GUEST_FEATURES);
	struct vring_desc *table = (struct vring_desc *)(void *)(b.guest.mem + INDIRECT);
	set_desc(&b.q->desc[0], GUEST_BASE + INDIRECT, (uint32_t)(n * sizeof(*table)), IND, 0);
	for (size_t i = 0; i < n; i++)
		set_desc(&table[i], BUFFER, 1, i + 1 < n ? NEXT : 0, (uint16_t)(i + 1));
	offer(&b, 0);
	int r = pop(&b, &c);
	if (r == 0)
		assert_int_equal(c.n_out, n);
	bench_deinit(&b);
	return r;
}

static void test_chain_limit(void **state)
{
	(void)state;
	assert_int_equal(pop_long_chain(1), 0);
	assert_int_equal(pop_long_chain(VIRTQ_CHAIN_MAX), 0);
	assert_int_equal(pop_long_chain(VIRTQ_CHAIN_MAX + 1), -EPROTO);
}

/* One or two descriptors of the queue, and two of an indirect table, that break it. */
static void test_broken_chains(void **state)
{
	static const struct {
		const char *broken; /* part of the diagnosis */
		uint16_t head;
		struct vring_desc d[2];
		struct vring_desc t[2];
	} cases[] = {
		{ "head", N, { { 0 } }, { { 0 } } },
		{ "head", UINT16_MAX, { { 0 } }, { { 0 } } },
		{ "index beyond", 0, { { BUFFER, 1, NEXT, N } }, { { 0 } } },
		{ "index beyond", 0, { { BUFFER, 1, NEXT, UINT16_MAX } }, { { 0 } } },
		{ "looping", 0, { { BUFFER, 1, NEXT, 0 } }, { { 0 } } },
		{ "looping", 0, { { BUFFER, 1, NEXT, 1 }, { BUFFER, 1, NEXT, 0 } }, { { 0 } } },
		{ "looping", 0, { { BUFFER, 0, NEXT, 0 } }, { { 0 } } },
		{ "readable", 0, { { BUFFER, 1, NEXT | W, 1 }, { BUFFER, 1, 0, 0 } }, { { 0 } } },
		{ "outside of memory", 0, { { GUEST_BASE - 1, 1, 0, 0 } }, { { 0 } } },
		{ "outside of memory", 0, { { GUEST_BASE + GUEST_MEMORY, 1, W, 0 } }, { { 0 } } },
		{ "outside of memory",
		  0,
		  { { GUEST_BASE + GUEST_MEMORY - 1, 2, 0, 0 } },
		  { { 0 } } },
		{ "outside of memory", 0, { { UINT64_MAX, UINT32_MAX, 0, 0 } }, { { 0 } } },
		{ "outside of memory", 0, { { BUFFER, UINT32_MAX, W, 0 } }, { { 0 } } },
		{ "successor", 0, { { GUEST_BASE + INDIRECT, 16, IND | NEXT, 1 } }, { { 0 } } },
		{ "wrong size", 0, { { GUEST_BASE + INDIRECT, 0, IND, 0 } }, { { 0 } } },
		{ "wrong size", 0, { { GUEST_BASE + INDIRECT, 15, IND, 0 } }, { { 0 } } },
		{ "wrong size", 0, { { GUEST_BASE + INDIRECT, 17, IND, 0 } }, { { 0 } } },
		{ "wrong size",
		  0,
		  { { GUEST_BASE + INDIRECT, UINT32_MAX - 15, IND, 0 } },
		  { { 0 } } },
		{ "table outside",
		  0,
		  { { GUEST_BASE + GUEST_MEMORY - 16, 32, IND, 0 } },
		  { { 0 } } },
		{ "table outside", 0, { { UINT64_MAX - 15, 32, IND, 0 } }, { { 0 } } },
		{ "inside an indirect",
		  0,
		  { { GUEST_BASE + INDIRECT, 16, IND, 0 } },
		  { { GUEST_BASE + INDIRECT, 16, IND, 0 } } },
		{ "index beyond",
		  0,
		  { { GUEST_BASE + INDIRECT, 16, IND, 0 } },
		  { { BUFFER, 1, NEXT, 1 } } },
		{ "looping",
		  0,
		  { { GUEST_BASE + INDIRECT, 16, IND, 0 } },
		  { { BUFFER, 1, NEXT, 0 } } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bench b;
		struct virtq_chain c = { .head = 99 };
		bench_init(&b, 0, GUEST_FEATURES);
		memcpy(b.q->desc, cases[i].d, sizeof(cases[i].d));
		memcpy(b.guest.mem + INDIRECT, cases[i].t, sizeof(cases[i].t));
		offer(&b, cases[i].head);
		assert_int_equal(pop(&b, &c), -EPROTO);
		assert_non_null(strstr(b.vq.broken, cases[i].broken));
		assert_int_equal(c.head, 99);
		/* It stays broken, and silent. */
		set_desc(&b.q->desc[0], BUFFER, 1, 0, 0);
		assert_int_equal(pop(&b, &c), -EPROTO);
		assert_false(virtq_want_kicks(&b.vq));
		bench_deinit(&b);
	}
}

static void test_features_are_needed(void **state)
{
	struct bench b;
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 0, 0);
	set_desc(&b.q->desc[0], GUEST_BASE + INDIRECT, 16, IND, 0);
	offer(&b, 0);
	assert_int_equal(pop(&b, &c), -EPROTO);
	assert_non_null(strstr(b.vq.broken, "feature"));
	bench_deinit(&b);
}

static void test_available_index_limit(void **state)
{
	struct bench b;
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 10, GUEST_FEATURES);
	b.q->avail->idx = 10 + N;
	assert_int_equal(pop(&b, &c), 0);
	bench_deinit(&b);
	bench_init(&b, 10, GUEST_FEATURES);
	b.q->avail->idx = 10 + N + 1;
	assert_int_equal(pop(&b, &c), -EPROTO);
	bench_deinit(&b);
	bench_init(&b, 10, GUEST_FEATURES);
	b.q->avail->idx = 9;
	assert_int_equal(pop(&b, &c), -EPROTO);
	bench_deinit(&b);
}

/* More pieces than the caller has room for cannot happen with sane memory tables. */
static void test_pieces_limit(void **state)
{
	struct bench b;
	struct iovec iov[1];
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 0, GUEST_FEATURES);
	set_desc(&b.q->desc[0], BUFFER, 1, NEXT, 1);
	set_desc(&b.q->desc[1], BUFFER, 1, 0, 0);
	offer(&b, 0);
	assert_int_equal(virtq_pop(&b.vq, iov, 1, &c), -EPROTO);
	bench_deinit(&b);
}

static void test_unpop_and_push(void **state)
{
	struct bench b;
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 65534, GUEST_FEATURES);
	for (uint16_t i = 0; i < 4; i++) {
		set_desc(&b.q->desc[i], BUFFER, 1, 0, 0);
		offer(&b, i);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(pop(&b, &c), 0);
	assert_int_equal(c.head, 2);
	virtq_unpop(&b.vq, 2);
	assert_int_equal(pop(&b, &c), 0);
	assert_int_equal(c.head, 1);
	virtq_push(&b.vq, 0, 11);
	virtq_push(&b.vq, 1, 22);
	assert_int_equal(b.q->used->idx, 65534); /* not published yet */
	virtq_publish(&b.vq);
	assert_int_equal(b.q->used->idx, 0);
	assert_int_equal(b.q->used->ring[65534 % N].id, 0);
	assert_int_equal(b.q->used->ring[65534 % N].len, 11);
	assert_int_equal(b.q->used->ring[65535 % N].id, 1);
	assert_int_equal(b.q->used->ring[65535 % N].len, 22);
	bench_deinit(&b);
}

static bool publish_one(struct bench *b)
{
	virtq_push(&b->vq, 0, 0);
	return virtq_publish(&b->vq);
}

static void test_notifications_by_event_index(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b, 0, GUEST_FEATURES);
	uint16_t *used_event = &b.q->avail->ring[N];
	*used_event = 50;
	assert_false(virtq_publish(&b.vq)); /* nothing new */
	assert_true(publish_one(&b));       /* the first one, to be safe */
	assert_false(publish_one(&b));
	*used_event = 2;
	assert_true(publish_one(&b)); /* index goes from 2 to 3 */
	assert_false(publish_one(&b));
	*used_event = 5;
	virtq_push(&b.vq, 0, 0);
	virtq_push(&b.vq, 0, 0);
	virtq_push(&b.vq, 0, 0); /* from 4 to 7, passing 5 */
	assert_true(virtq_publish(&b.vq));
	bench_deinit(&b);
}

static void test_notifications_by_flag(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b, 0, 0);
	assert_true(publish_one(&b));
	assert_true(publish_one(&b));
	b.q->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	assert_false(publish_one(&b));
	bench_deinit(&b);
}

static void test_kicks(void **state)
{
	struct bench b;
	struct virtq_chain c;
	(void)state;
	bench_init(&b, 0, GUEST_FEATURES);
	uint16_t *avail_event = (uint16_t *)(void *)&b.q->used->ring[N];
	set_desc(&b.q->desc[0], BUFFER, 1, 0, 0);
	offer(&b, 0);
	assert_true(virtq_want_kicks(&b.vq)); /* there is one already */
	assert_int_equal(pop(&b, &c), 0);
	assert_false(virtq_want_kicks(&b.vq));
	assert_int_equal(*avail_event, 1);
	virtq_spare_kicks(&b.vq);
	assert_int_equal(b.q->used->flags, 0);
	bench_deinit(&b);

	bench_init(&b, 0, 0);
	virtq_spare_kicks(&b.vq);
	assert_int_equal(b.q->used->flags, VRING_USED_F_NO_NOTIFY);
	assert_false(virtq_want_kicks(&b.vq));
	assert_int_equal(b.q->used->flags, 0);
	bench_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_locate),
		fixture_test(test_direct_chain),
		fixture_test(test_indirect_chain),
		fixture_test(test_chain_limit),
		fixture_test(test_broken_chains),
		fixture_test(test_features_are_needed),
		fixture_test(test_available_index_limit),
		fixture_test(test_pieces_limit),
		fixture_test(test_unpop_and_push),
		fixture_test(test_notifications_by_event_index),
		fixture_test(test_notifications_by_flag),
		fixture_test(test_kicks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
