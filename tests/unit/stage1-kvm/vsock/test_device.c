/* SPDX-License-Identifier: Apache-2.0 */
/* The device with a guest in the same process: packets, limits, hostile guests, resets. */
#include "stage1-kvm/vsock/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1-kvm/vsock/guest.h"

#define GUEST_BUFFER ((size_t)64 << 10)

struct bench {
	struct loop loop;
	struct loop_timer tick;
	struct device *d;
	struct guest g;
};

static void on_tick(void *ctx)
{
	(void)ctx;
}

static unsigned n_reports;
static char last_report[256];

static void on_report(const char *text)
{
	n_reports++;
	assert_int_equal(str_copy(last_report, sizeof(last_report), text), 0);
}

static void bench_init(struct bench *b)
{
	const struct device_config config = {
		.listen_fd = -EBADF, .guest_cid = GUEST_CID, .max_streams = 64, .report = on_report
	};
	n_reports = 0;
	*b = (struct bench){ 0 };
	guest_init(&b->g);
	assert_int_equal(loop_init(&b->loop), 0);
	assert_int_equal(device_new(&b->loop, &config, &b->d), 0);
}

static void bench_deinit(struct bench *b)
{
	device_free(b->d);
	loop_deinit(&b->loop);
	guest_deinit(&b->g);
}

/* Kicks both queues and lets the device work as main() does. */
static void settle(struct bench *b)
{
	guest_kick(&b->g, DEVICE_RX);
	guest_kick(&b->g, DEVICE_TX);
	for (int i = 0; i < 8; i++) {
		loop_timer_arm(&b->loop, &b->tick, 0, on_tick, NULL);
		assert_int_equal(loop_turn(&b->loop), 0);
		assert_int_equal(device_pump(b->d), 0);
	}
}

static int dial(struct bench *b, const char *line)
{
	int fds[2];
	assert_int_equal(unix_pair(fds), 0);
	assert_int_equal(fd_set_nonblock(fds[0], true), 0);
	assert_int_equal(write(fds[1], line, strlen(line)), strlen(line));
	assert_int_equal(device_add_host(b->d, fds[0]), 0);
	return fds[1];
}

static struct vsock_header expect(struct bench *b, enum vsock_op op)
{
	struct vsock_header h = { 0 };
	assert_true(guest_recv(&b->g, &h, NULL));
	assert_int_equal(h.op, op);
	return h;
}

static void expect_nothing(struct bench *b)
{
	struct vsock_header h;
	assert_false(guest_recv(&b->g, &h, NULL));
}

static struct guest_conn open_conn(struct bench *b, int *ret_host)
{
	char line[32];
	*ret_host = dial(b, "CONNECT 1024\n");
	settle(b);
	struct vsock_header request = expect(b, VSOCK_OP_REQUEST);
	struct guest_conn c = guest_accept(&b->g, &request, GUEST_BUFFER);
	settle(b);
	assert_true(recv(*ret_host, line, sizeof(line), MSG_DONTWAIT) > 3);
	return c;
}

static bool is_closed(int host)
{
	char c;
	return recv(host, &c, 1, MSG_DONTWAIT) == 0;
}

static void test_stream_both_ways(void **state)
{
	struct bench b;
	char text[GUEST_RX_BUFFER] = { 0 };
	struct vsock_header h;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = open_conn(&b, &host);
	assert_int_equal(write(host, "to the guest", 12), 12);
	settle(&b);
	assert_true(guest_recv(&b.g, &h, text));
	assert_int_equal(h.op, VSOCK_OP_RW);
	assert_int_equal(h.len, 12);
	assert_string_equal(text, "to the guest");
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, "to the host", 11));
	settle(&b);
	assert_int_equal(recv(host, text, sizeof(text), MSG_DONTWAIT), 11);
	assert_memory_equal(text, "to the host", 11);
	close(host);
	settle(&b);
	/* Deaf at once, at the end of its bytes right after: the guest may see both steps. */
	assert_true(guest_recv(&b.g, &h, NULL));
	assert_int_equal(h.op, VSOCK_OP_SHUTDOWN);
	while (h.op == VSOCK_OP_SHUTDOWN)
		assert_true(guest_recv(&b.g, &h, NULL));
	assert_int_equal(h.op, VSOCK_OP_RST);
	expect_nothing(&b);
	bench_deinit(&b);
}

static void test_credit_is_kept(void **state)
{
	struct bench b;
	static char bytes[4 * GUEST_BUFFER];
	char text[GUEST_RX_BUFFER];
	struct vsock_header h;
	size_t got = 0;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = open_conn(&b, &host);
	assert_int_equal(send(host, bytes, 2 * GUEST_BUFFER, MSG_DONTWAIT), 2 * GUEST_BUFFER);
	bool asked = false;
	settle(&b);
	while (guest_recv(&b.g, &h, text)) {
		got += h.len;
		asked |= h.op == VSOCK_OP_CREDIT_REQUEST;
		settle(&b);
	}
	assert_int_equal(got, GUEST_BUFFER); /* not a byte more */
	assert_true(asked);
	c.fwd_cnt += 1;
	assert_true(guest_send(&b.g, &c, VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0));
	settle(&b);
	assert_int_equal(expect(&b, VSOCK_OP_RW).len, 1);
	close(host);
	bench_deinit(&b);
}

static void test_strangers_get_rst(void **state)
{
	struct bench b;
	struct guest_conn c = { .port = 5, .host_port = 6 };
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	assert_true(guest_send(&b.g, &c, VSOCK_OP_REQUEST, 0, NULL, 0));
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, "x", 1));
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RST, 0, NULL, 0)); /* not answered */
	settle(&b);
	for (int i = 0; i < 2; i++) {
		struct vsock_header h = expect(&b, VSOCK_OP_RST);
		assert_int_equal(h.src_port, 6);
		assert_int_equal(h.dst_port, 5);
	}
	expect_nothing(&b);
	bench_deinit(&b);
}

static void test_misaddressed_packets_are_dropped(void **state)
{
	struct vsock_header h = { .src_cid = GUEST_CID,
				  .dst_cid = VSOCK_CID_HOST,
				  .type = VSOCK_TYPE_STREAM,
				  .op = VSOCK_OP_REQUEST };
	struct bench b;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	h.dst_cid = 3;
	assert_true(guest_send_raw(&b.g, &h, NULL, 0));
	h.dst_cid = VSOCK_CID_HOST;
	h.src_cid = VSOCK_CID_HOST;
	assert_true(guest_send_raw(&b.g, &h, NULL, 0));
	settle(&b);
	expect_nothing(&b);
	h.src_cid = GUEST_CID;
	h.type = 2; /* seqpacket was not negotiated */
	assert_true(guest_send_raw(&b.g, &h, NULL, 0));
	settle(&b);
	expect(&b, VSOCK_OP_RST);
	bench_deinit(&b);
}

/* More payload in the header than in the buffers: the packet is answered with RST. */
static void test_lying_length(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = open_conn(&b, &host);
	struct vsock_header h = { .src_cid = GUEST_CID,
				  .dst_cid = VSOCK_CID_HOST,
				  .src_port = c.port,
				  .dst_port = c.host_port,
				  .type = VSOCK_TYPE_STREAM,
				  .op = VSOCK_OP_RW,
				  .len = 5 };
	assert_true(guest_send_raw(&b.g, &h, "1234", 4));
	h.len = 4; /* less than there is: the rest is ignored */
	assert_true(guest_send_raw(&b.g, &h, "12345", 5));
	settle(&b);
	expect(&b, VSOCK_OP_RST);
	char text[8];
	assert_int_equal(recv(host, text, sizeof(text), MSG_DONTWAIT), 4);
	close(host);
	bench_deinit(&b);
}

static void test_short_packets_are_dropped(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = { .port = 1 };
	assert_true(guest_send(&b.g, &c, VSOCK_OP_REQUEST, 0, NULL, 0));
	b.g.q[DEVICE_TX].desc[0].len = VSOCK_HEADER_SIZE - 1;
	settle(&b);
	assert_int_equal(b.g.q[DEVICE_TX].used->idx, 1);
	expect_nothing(&b);
	bench_deinit(&b);
}

/* A guest that takes no packets cannot make us collect more than a bounded number of answers. */
static void test_replies_limit(void **state)
{
	struct bench b;
	struct guest_conn c = { .port = 1 };
	struct guest_queue *rx = &b.g.q[DEVICE_RX];
	unsigned sent = 0, got = 0;
	struct vsock_header h;
	(void)state;
	bench_init(&b);
	rx->avail->idx = 0; /* takes back all receive buffers */
	rx->next_avail = 0;
	guest_attach(&b.g, b.d);
	for (int i = 0; i < 4; i++) {
		while (guest_send(&b.g, &c, VSOCK_OP_REQUEST, 0, NULL, 0))
			sent++;
		settle(&b);
	}
	/* 64 answers wait here, 64 packets in the queue: nothing is lost. */
	assert_int_equal(sent, 128);
	assert_int_equal(b.g.q[DEVICE_TX].used->idx, 64);
	for (uint16_t slot = 0; slot < GUEST_QUEUE_SIZE; slot++)
		guest_offer_rx(&b.g, slot);
	settle(&b);
	while (guest_recv(&b.g, &h, NULL)) {
		assert_int_equal(h.op, VSOCK_OP_RST);
		got++;
	}
	assert_int_equal(got, sent);
	bench_deinit(&b);
}

/* Receive buffers in odd pieces, as virtio 1.2, 2.7.4 allows. */
static void test_receive_buffers_in_pieces(void **state)
{
	struct bench b;
	struct guest_queue *q = &b.g.q[DEVICE_RX];
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = open_conn(&b, &host);
	(void)c;
	/* The next free buffer becomes 1 + 42 + 1 + 2 + 1 bytes. */
	uint16_t slot = q->avail->ring[q->next_used % GUEST_QUEUE_SIZE];
	static const uint32_t pieces[] = { 1, 42, 1, 2, 1 };
	struct vring_desc *table = (struct vring_desc *)(void *)(b.g.mem + GUEST_AT_TX + 8192);
	uint64_t at = GUEST_BASE + GUEST_AT_TX + 16384;
	for (uint16_t i = 0; i < 5; i++) {
		table[i] = (struct vring_desc){ .addr = at + i * UINT64_C(100),
						.len = pieces[i],
						.flags = VRING_DESC_F_WRITE |
							 (i < 4 ? VRING_DESC_F_NEXT : 0),
						.next = (uint16_t)(i + 1) };
	}
	q->desc[slot] = (struct vring_desc){ .addr = GUEST_BASE + GUEST_AT_TX + 8192,
					     .len = sizeof(*table) * 5,
					     .flags = VRING_DESC_F_INDIRECT };
	assert_int_equal(write(host, "abc", 3), 3);
	settle(&b);
	assert_int_equal(q->used->ring[q->next_used % GUEST_QUEUE_SIZE].len, VSOCK_HEADER_SIZE + 3);
	assert_memory_equal(b.g.mem + GUEST_AT_TX + 16384 + 300, "ab", 2);
	assert_memory_equal(b.g.mem + GUEST_AT_TX + 16384 + 400, "c", 1);
	assert_int_equal(b.g.mem[GUEST_AT_TX + 16384], VSOCK_CID_HOST);
	close(host);
	bench_deinit(&b);
}

/* What a guest can do to a queue; then the device must be closed, silent and alive. */
static void break_tx(struct bench *b)
{
	b->g.q[DEVICE_TX].avail->idx = 1000;
}

static void break_rx(struct bench *b)
{
	struct guest_queue *q = &b->g.q[DEVICE_RX];
	for (size_t i = 0; i < GUEST_QUEUE_SIZE; i++)
		q->desc[i].len = VSOCK_HEADER_SIZE; /* a byte more is needed */
}

static void run_broken(void (*break_it)(struct bench *b), size_t index)
{
	struct bench b;
	int host, err = eventfd(0, EFD_CLOEXEC);
	uint64_t count;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	assert_int_equal(device_set_err(b.d, index, dup(err)), 0);
	struct guest_conn c = open_conn(&b, &host);
	break_it(&b);
	assert_int_equal(write(host, "x", 1), 1);
	settle(&b);
	assert_true(is_closed(host));
	close(host);
	assert_int_equal(read(err, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1); /* once */
	int fds[2];
	assert_int_equal(unix_pair(fds), 0);
	assert_int_equal(device_add_host(b.d, fds[0]), -ENODEV);
	fd_close(fds[0]);
	fd_close(fds[1]);
	settle(&b);
	/* The guest resets the device, and it works again. */
	for (size_t i = 0; i < DEVICE_QUEUES; i++)
		device_stop_queue(b.d, i);
	guest_restart(&b.g);
	guest_attach(&b.g, b.d);
	c = open_conn(&b, &host);
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, "y", 1));
	settle(&b);
	char got;
	assert_int_equal(recv(host, &got, 1, MSG_DONTWAIT), 1);
	close(host);
	close(err);
	bench_deinit(&b);
}

static void test_broken_queues(void **state)
{
	(void)state;
	run_broken(break_tx, DEVICE_TX);
	run_broken(break_rx, DEVICE_RX);
}

static void test_reports_are_limited(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	for (unsigned i = 0; i < DEVICE_REPORTS_MAX + 3; i++) {
		break_tx(&b);
		settle(&b);
		assert_int_equal(n_reports, MIN(i + 1, DEVICE_REPORTS_MAX));
		assert_non_null(strstr(last_report, "guest broke queue 1: available index"));
		for (size_t q = 0; q < DEVICE_QUEUES; q++)
			device_stop_queue(b.d, q);
		guest_restart(&b.g);
		guest_attach(&b.g, b.d);
	}
	bench_deinit(&b);
}

/* A paused VM continues where it was. */
static void test_pause_keeps_streams(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	struct guest_conn c = open_conn(&b, &host);
	uint16_t base[DEVICE_QUEUES];
	for (size_t i = 0; i < DEVICE_QUEUES; i++)
		base[i] = device_stop_queue(b.d, i);
	assert_int_equal(base[DEVICE_RX], 1);
	assert_int_equal(base[DEVICE_TX], 1);
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, "x", 1));
	assert_int_equal(write(host, "y", 1), 1);
	settle(&b);
	expect_nothing(&b);
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		struct device_queue_plan plan = guest_plan(i, base[i]);
		device_start_queue(b.d, i, &plan);
	}
	settle(&b);
	expect(&b, VSOCK_OP_RW);
	char text[8];
	assert_int_equal(recv(host, text, sizeof(text), MSG_DONTWAIT), 1);
	close(host);
	bench_deinit(&b);
}

static void test_guest_reset_ends_streams(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	open_conn(&b, &host);
	cleanup_fd int waiting = dial(&b, "CONN");
	for (size_t i = 0; i < DEVICE_QUEUES; i++)
		device_stop_queue(b.d, i);
	settle(&b);
	assert_int_equal(write(waiting, "ECT 9\n", 6), 6);
	settle(&b);
	guest_restart(&b.g);
	guest_attach(&b.g, b.d);
	settle(&b);
	assert_true(is_closed(host));
	assert_int_equal(expect(&b, VSOCK_OP_REQUEST).dst_port, 9);
	close(host);
	bench_deinit(&b);
}

/* The VMM maps the memory anew under running queues, in two regions this time. */
static void test_memory_moves(void **state)
{
	struct bench b;
	struct err e = ERR_INIT;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	open_conn(&b, &host);
	const size_t cut = GUEST_AT_RX + GUEST_RX_BUFFER * 2;
	struct guest_region low = guest_region(), high = guest_region();
	low.size = cut;
	high.guest_addr += cut;
	high.user_addr += cut;
	high.file_offset += cut;
	high.size -= cut;
	struct guest_memory m = GUEST_MEMORY_INIT;
	assert_int_equal(guest_memory_add(&m, &low, b.g.memfd, &e), 0);
	assert_int_equal(guest_memory_add(&m, &high, b.g.memfd, &e), 0);
	device_set_memory(b.d, &m);
	assert_int_equal(m.n, 0);
	/* A buffer across the cut. */
	b.g.q[DEVICE_RX].desc[1].addr = GUEST_BASE + cut - VSOCK_HEADER_SIZE - 2;
	assert_int_equal(write(host, "four", 4), 4);
	settle(&b);
	assert_memory_equal(b.g.mem + cut - 2, "four", 4);
	/* Memory without the queues breaks them. */
	high.user_addr = 0;
	assert_int_equal(guest_memory_add(&m, &high, b.g.memfd, &e), 0);
	device_set_memory(b.d, &m);
	assert_true(is_closed(host));
	assert_int_equal(n_reports, 2);
	settle(&b);
	close(host);
	bench_deinit(&b);
}

static void test_new_session_forgets(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	open_conn(&b, &host);
	device_reset(b.d);
	assert_true(is_closed(host));
	close(host);
	guest_restart(&b.g);
	guest_attach(&b.g, b.d);
	open_conn(&b, &host);
	close(host);
	bench_deinit(&b);
}

/* A guest may choose any place and size for its queues; the device is broken, not gone. */
static void test_impossible_queues(void **state)
{
	struct device_queue_plan cases[4];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cases[i] = guest_plan(DEVICE_TX, 0);
	cases[0].desc = GUEST_USER + GUEST_MEMORY;
	cases[1].avail++;
	cases[2].size = 100;
	cases[3].used = 0;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench b;
		bench_init(&b);
		guest_attach(&b.g, b.d);
		for (size_t q = 0; q < DEVICE_QUEUES; q++)
			device_stop_queue(b.d, q);
		device_start_queue(b.d, DEVICE_TX, &cases[i]);
		struct device_queue_plan rx = guest_plan(DEVICE_RX, 0);
		device_start_queue(b.d, DEVICE_RX, &rx);
		settle(&b);
		assert_int_equal(n_reports, 1);
		assert_non_null(strstr(last_report, "guest broke queue 1: it is not inside"));
		assert_int_equal(device_stop_queue(b.d, DEVICE_TX), 0);
		device_stop_queue(b.d, DEVICE_RX);
		guest_restart(&b.g);
		guest_attach(&b.g, b.d);
		int host;
		open_conn(&b, &host);
		close(host);
		bench_deinit(&b);
	}
}

static void test_queue_without_memory(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b);
	struct device_queue_plan plan = guest_plan(DEVICE_RX, 9);
	assert_int_equal(device_stop_queue(b.d, DEVICE_RX), 0);
	device_start_queue(b.d, DEVICE_RX, &plan);
	settle(&b);
	assert_int_equal(n_reports, 1);
	assert_int_equal(device_stop_queue(b.d, DEVICE_RX), 9);
	bench_deinit(&b);
}

/* Memory that the VMM cut off: the kernel says EFAULT where we would get SIGBUS. */
static void test_truncated_memory(void **state)
{
	struct bench b;
	int host;
	(void)state;
	bench_init(&b);
	guest_attach(&b.g, b.d);
	open_conn(&b, &host);
	assert_int_equal(ftruncate(b.g.memfd, GUEST_AT_RX), 0);
	assert_int_equal(write(host, "x", 1), 1);
	loop_timer_arm(&b.loop, &b.tick, 0, on_tick, NULL);
	assert_int_equal(loop_turn(&b.loop), 0);
	assert_int_equal(device_pump(b.d), -EFAULT);
	close(host);
	bench_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_stream_both_ways),
		fixture_test(test_credit_is_kept),
		fixture_test(test_strangers_get_rst),
		fixture_test(test_misaddressed_packets_are_dropped),
		fixture_test(test_lying_length),
		fixture_test(test_short_packets_are_dropped),
		fixture_test(test_replies_limit),
		fixture_test(test_receive_buffers_in_pieces),
		fixture_test(test_broken_queues),
		fixture_test(test_reports_are_limited),
		fixture_test(test_pause_keeps_streams),
		fixture_test(test_guest_reset_ends_streams),
		fixture_test(test_memory_moves),
		fixture_test(test_new_session_forgets),
		fixture_test(test_impossible_queues),
		fixture_test(test_queue_without_memory),
		fixture_test(test_truncated_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
