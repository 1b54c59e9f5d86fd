/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real husk-vsock between a played VMM and guest and real host programs: transfers with
 * checksums, limits, stalled readers, hostile peers, and what the process may still do.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vsock/confine.h"
#include "stage1-kvm/vsock/stream.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1-kvm/vsock/vmm.h"

#define WAIT_MS      120000
#define GUEST_BUFFER (256u << 10) /* what Linux advertises */
#define TRANSFER     (64u << 20)

struct bench {
	struct vmm v;
	struct guest g;
};

static void bench_init(struct bench *b, void **state)
{
	vmm_start(&b->v, HUSK_VSOCK, fixture_path(state), false);
	guest_init(&b->g);
}

static void bench_deinit(struct bench *b)
{
	vmm_hang_up(&b->v);
	assert_int_equal(vmm_wait(&b->v), 0);
	assert_string_equal(b->v.stderr_text, "");
	guest_deinit(&b->g);
}

/* Waits for a notification of the guest, or for @host to be ready (-1: none). */
static void wait_for(struct bench *b, int host, short events)
{
	struct pollfd p[3] = { { .fd = b->g.q[0].call, .events = POLLIN },
			       { .fd = b->g.q[1].call, .events = POLLIN },
			       { .fd = host, .events = events } };
	uint64_t count;
	assert_true(poll(p, 3, WAIT_MS) > 0);
	for (int i = 0; i < 2; i++)
		if (p[i].revents)
			assert_int_equal(read(p[i].fd, &count, sizeof(count)), sizeof(count));
}

static struct vsock_header next_packet(struct bench *b)
{
	struct vsock_header h;
	while (!guest_recv(&b->g, &h, NULL)) {
		guest_kick(&b->g, DEVICE_RX);
		wait_for(b, -1, 0);
	}
	return h;
}

static void read_ok(int host)
{
	char c = 0;
	for (int i = 0; c != '\n'; i++) {
		assert_int_equal(read(host, &c, 1), 1);
		assert_true(i != 0 || c == 'O');
	}
}

static struct guest_conn open_conn(struct bench *b, int *ret_host)
{
	*ret_host = vmm_dial(&b->v, "CONNECT 1024\n");
	struct vsock_header request = next_packet(b);
	struct guest_conn c = guest_accept(&b->g, &request, GUEST_BUFFER);
	guest_kick(&b->g, DEVICE_TX);
	read_ok(*ret_host);
	return c;
}

static bool is_closed_soon(int host)
{
	struct pollfd p = { .fd = host, .events = POLLIN };
	char c;
	return poll(&p, 1, WAIT_MS) == 1 && recv(host, &c, 1, 0) <= 0;
}

/* A number of kB from a file of /proc. */
static long read_kb(pid_t pid, const char *file, const char *key)
{
	char path[64], line[256];
	long kb = -1;
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtol(line + strlen(key), NULL, 10);
	fclose(f);
	return kb;
}

static long private_kb(struct bench *b)
{
	return read_kb(b->v.pid, "smaps_rollup", "Pss_Anon:");
}

/* --- the stream's content: a counter, so that a lost or doubled byte shows --- */

static void make_pattern(char *mem, size_t len, uint64_t from)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = (char)((from + i) * UINT64_C(2654435761) >> 16);
}

static void check_pattern(const char *mem, size_t len, uint64_t from)
{
	static char want[GUEST_TX_PAYLOAD];
	while (len > 0) {
		size_t part = len < sizeof(want) ? len : sizeof(want);
		make_pattern(want, part, from);
		assert_memory_equal(mem, want, part);
		mem += part;
		from += part;
		len -= part;
	}
}

static void print_rate(const char *what, uint64_t bytes, int64_t start_ns)
{
	int64_t ns = clock_monotonic_ns() - start_ns;
	print_message("%s: %.0f MB/s\n", what, (double)bytes * 1e3 / (double)ns);
}

/* The guest sends @total bytes in packets of @packet bytes; the host checks them. */
static void run_to_host(struct bench *b, struct guest_conn *c, int host, uint64_t total,
			size_t packet)
{
	static char out[GUEST_TX_PAYLOAD], in[1 << 18];
	uint64_t sent = 0, got = 0;
	struct vsock_header h;
	while (got < total) {
		bool stuck = false;
		while (sent < total && !stuck) {
			size_t len = MIN(packet, (size_t)(total - sent));
			stuck = guest_conn_credit(c) < len;
			if (stuck)
				break;
			make_pattern(out, len, sent);
			stuck = !guest_send(&b->g, c, VSOCK_OP_RW, 0, out, len);
			sent += stuck ? 0 : len;
		}
		guest_kick(&b->g, DEVICE_TX);
		wait_for(b, host, POLLIN);
		while (guest_recv(&b->g, &h, NULL))
			guest_conn_note(c, &h);
		guest_kick(&b->g, DEVICE_RX);
		ssize_t n;
		while ((n = recv(host, in, sizeof(in), MSG_DONTWAIT)) > 0) {
			check_pattern(in, (size_t)n, got);
			got += (uint64_t)n;
		}
	}
	assert_int_equal(got, total);
	/* The host has the last bytes before the device has returned what they came in. */
	while (!guest_all_taken(&b->g))
		wait_for(b, -1, 0);
}

/* The host sends @total bytes; the guest checks them. */
static void run_to_guest(struct bench *b, struct guest_conn *c, int host, uint64_t total)
{
	static char out[1 << 18], in[GUEST_RX_BUFFER];
	uint64_t sent = 0, got = 0;
	struct vsock_header h;
	uint32_t told = c->fwd_cnt;
	while (got < total) {
		ssize_t n = 1;
		while (sent < total && n > 0) {
			size_t len = MIN(sizeof(out), (size_t)(total - sent));
			make_pattern(out, len, sent);
			n = send(host, out, len, MSG_DONTWAIT);
			sent += n > 0 ? (uint64_t)n : 0;
		}
		wait_for(b, sent < total ? host : -1, POLLOUT);
		while (guest_recv(&b->g, &h, in)) {
			check_pattern(in, h.len, got);
			got += h.len;
			c->fwd_cnt += h.len;
		}
		guest_kick(&b->g, DEVICE_RX);
		if (c->fwd_cnt - told >= GUEST_BUFFER / 4) {
			assert_true(guest_send(&b->g, c, VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0));
			guest_kick(&b->g, DEVICE_TX);
			told = c->fwd_cnt;
		}
	}
	assert_int_equal(got, total);
}

static void test_transfers(void **state)
{
	struct bench b;
	int host;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	struct guest_conn c = open_conn(&b, &host);
	int64_t start = clock_monotonic_ns();
	run_to_guest(&b, &c, host, TRANSFER);
	print_rate("host to guest, 4 KiB buffers", TRANSFER, start);
	start = clock_monotonic_ns();
	run_to_host(&b, &c, host, TRANSFER, GUEST_TX_PAYLOAD);
	print_rate("guest to host, 64 KiB packets", TRANSFER, start);
	start = clock_monotonic_ns();
	run_to_host(&b, &c, host, TRANSFER, 4096);
	print_rate("guest to host, 4 KiB packets", TRANSFER, start);
	print_message("private memory: %ld kB, PSS of files: %ld kB\n", private_kb(&b),
		      read_kb(b.v.pid, "smaps_rollup", "Pss_File:"));
	/* The host half-closes, the guest answers and closes. */
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	struct vsock_header h = next_packet(&b);
	while (h.op == VSOCK_OP_CREDIT_UPDATE)
		h = next_packet(&b);
	assert_int_equal(h.op, VSOCK_OP_SHUTDOWN);
	assert_int_equal(h.flags, VSOCK_SHUTDOWN_SEND);
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, "bye", 3));
	assert_true(guest_send(&b.g, &c, VSOCK_OP_SHUTDOWN, VSOCK_SHUTDOWN_BOTH, NULL, 0));
	guest_kick(&b.g, DEVICE_TX);
	char text[4];
	assert_int_equal(recv(host, text, 3, MSG_WAITALL), 3);
	assert_memory_equal(text, "bye", 3);
	assert_true(is_closed_soon(host));
	assert_int_equal(next_packet(&b).op, VSOCK_OP_RST);
	close(host);
	bench_deinit(&b);
}

static void test_nobody_listens(void **state)
{
	struct bench b;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	int host = vmm_dial(&b.v, "CONNECT 9\n");
	struct vsock_header h = next_packet(&b);
	struct guest_conn c = { .port = h.dst_port, .host_port = h.src_port };
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RST, 0, NULL, 0));
	guest_kick(&b.g, DEVICE_TX);
	assert_true(is_closed_soon(host));
	close(host);
	bench_deinit(&b);
}

/*
 * Sends blocks until the device gives no credit for another. A device that was not scheduled for a
 * while is as silent as one that has nothing to say, so silence proves nothing: what proves it is
 * that all was taken, since the device publishes what it has to say before it returns that.
 */
static void use_up_credit(struct bench *b, struct guest_conn *c)
{
	static const char block[GUEST_TX_PAYLOAD];
	struct vsock_header h;
	for (;;) {
		bool all_taken = guest_all_taken(&b->g);
		while (guest_recv(&b->g, &h, NULL))
			guest_conn_note(c, &h);
		if (all_taken && guest_conn_credit(c) < sizeof(block))
			return;
		while (guest_conn_credit(c) >= sizeof(block) &&
		       guest_send(&b->g, c, VSOCK_OP_RW, 0, block, sizeof(block)))
			;
		guest_kick(&b->g, DEVICE_TX);
		guest_kick(&b->g, DEVICE_RX);
		wait_for(b, -1, 0);
	}
}

/* The device tells of freed room a quarter of a buffer at a time, and of all when it is asked. */
static void learn_credit(struct bench *b, struct guest_conn *c)
{
	struct vsock_header h;
	assert_true(guest_send(&b->g, c, VSOCK_OP_CREDIT_REQUEST, 0, NULL, 0));
	guest_kick(&b->g, DEVICE_TX);
	do
		h = next_packet(b);
	while (h.dst_port != c->port || h.op != VSOCK_OP_CREDIT_UPDATE);
	guest_conn_note(c, &h);
}

/* The guest floods one stream whose host does not read; the memory stays, others work. */
static void test_stalled_reader(void **state)
{
	static const char block[GUEST_TX_PAYLOAD];
	struct bench b;
	int host, other;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	struct guest_conn other_conn = open_conn(&b, &other);
	struct guest_conn c = open_conn(&b, &host);
	long before = private_kb(&b);
	struct vsock_header h;
	use_up_credit(&b, &c);
	long after = private_kb(&b);
	print_message("private memory: %ld kB before, %ld kB stalled\n", before, after);
	if (CONFINE_WORKS) /* a sanitizer's allocator keeps what was freed */
		assert_true(after - before <= (long)(STREAM_BUFFER_MAX >> 10) + 64);
	run_to_host(&b, &other_conn, other, 1 << 20, 4096);
	learn_credit(&b, &c);
	/* Beyond its credit: the stream is lost, nothing else. */
	while (guest_conn_credit(&c) >= 1)
		assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, block,
				       MIN(sizeof(block), (size_t)guest_conn_credit(&c))));
	assert_true(guest_send(&b.g, &c, VSOCK_OP_RW, 0, block, 1));
	guest_kick(&b.g, DEVICE_TX);
	do
		h = next_packet(&b);
	while (h.op != VSOCK_OP_RST);
	assert_int_equal(h.dst_port, c.port);
	/* The large allocation is gone; the heap may keep the small ones that it grew from. */
	if (CONFINE_WORKS)
		assert_true(private_kb(&b) - before <= 128);
	close(host);
	close(other);
	bench_deinit(&b);
}

static void test_table_limit(void **state)
{
	struct rlimit limit = { 4096, 4096 };
	static int host[STREAMS_MAX];
	struct bench b;
	setrlimit(RLIMIT_NOFILE, &limit);
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	for (size_t i = 0; i < STREAMS_MAX; i++)
		open_conn(&b, &host[i]);
	print_message("private memory with %d streams: %ld kB\n", STREAMS_MAX, private_kb(&b));
	int extra = vmm_dial(&b.v, "CONNECT 1024\n");
	assert_true(is_closed_soon(extra));
	close(extra);
	close(host[7]);
	struct vsock_header h = next_packet(&b);
	while (h.op != VSOCK_OP_RST)
		h = next_packet(&b);
	open_conn(&b, &host[7]);
	for (size_t i = 0; i < STREAMS_MAX; i++)
		close(host[i]);
	bench_deinit(&b);
}

/* Programs that dial before the guest is up are served when it is. */
static void test_dial_before_boot(void **state)
{
	struct bench b;
	char c;
	bench_init(&b, state);
	int host = vmm_dial(&b.v, "CONNECT 1024\n");
	assert_int_equal(recv(host, &c, 1, MSG_DONTWAIT), -1);
	vmm_plug(&b.v, &b.g);
	struct vsock_header request = next_packet(&b);
	guest_accept(&b.g, &request, GUEST_BUFFER);
	guest_kick(&b.g, DEVICE_TX);
	read_ok(host);
	close(host);
	bench_deinit(&b);
}

static void test_pause_and_reset(void **state)
{
	struct bench b;
	uint16_t base[DEVICE_QUEUES];
	int host;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	struct guest_conn c = open_conn(&b, &host);
	vmm_stop_queues(&b.v, base);
	vmm_run_queues(&b.v, &b.g, base);
	run_to_host(&b, &c, host, 100000, 4096);
	/* The device is removed and added again over the same socket. */
	vmm_stop_queues(&b.v, base);
	guest_restart(&b.g);
	vmm_plug(&b.v, &b.g);
	assert_true(is_closed_soon(host));
	close(host);
	c = open_conn(&b, &host);
	run_to_host(&b, &c, host, 100000, 4096);
	close(host);
	bench_deinit(&b);
}

static void test_broken_guest_does_not_kill(void **state)
{
	struct bench b;
	uint16_t base[DEVICE_QUEUES];
	int host;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	open_conn(&b, &host);
	b.g.q[DEVICE_TX].avail->idx = 1000;
	guest_kick(&b.g, DEVICE_TX);
	assert_true(is_closed_soon(host));
	close(host);
	vmm_stop_queues(&b.v, base);
	guest_restart(&b.g);
	vmm_plug(&b.v, &b.g);
	open_conn(&b, &host);
	close(host);
	vmm_hang_up(&b.v);
	assert_int_equal(vmm_wait(&b.v), 0);
	assert_non_null(strstr(b.v.stderr_text, "guest broke queue 1: available index"));
	assert_ptr_equal(strchr(b.v.stderr_text, '\n') + 1,
			 b.v.stderr_text + strlen(b.v.stderr_text));
	guest_deinit(&b.g);
}

/* What a VMM must not do ends the process with one line. */
static void expect_death(struct bench *b, const char *line)
{
	assert_int_equal(vmm_wait(&b->v), 1);
	assert_true(strncmp(b->v.stderr_text, "husk-vsock: ", 12) == 0);
	if (!strstr(b->v.stderr_text, line))
		fail_msg("\"%s\" is not in: %s", line, b->v.stderr_text);
	assert_ptr_equal(strchr(b->v.stderr_text, '\n') + 1,
			 b->v.stderr_text + strlen(b->v.stderr_text));
	guest_deinit(&b->g);
}

/* A VMM that connects by a path instead of inheriting its end is served the same. */
static void test_vmm_connects(void **state)
{
	struct bench b;
	vmm_start(&b.v, HUSK_VSOCK, fixture_path(state), true);
	guest_init(&b.g);
	vmm_plug(&b.v, &b.g);
	int host;
	open_conn(&b, &host);
	close(host);
	bench_deinit(&b);
}

static void test_vmm_errors(void **state)
{
	static const uint32_t unknown[] = { 99, 1, 0 }, huge[] = { 1, 1, 100000 },
			      reply[] = { 1, 5, 0 };
	struct bench b;
	int fds[2] = { STDIN_FILENO, STDERR_FILENO };
	bench_init(&b, state);
	vmm_send_raw(&b.v, unknown, sizeof(unknown), NULL, 0);
	expect_death(&b, "request 99: unknown");
	bench_init(&b, state);
	vmm_send_raw(&b.v, huge, sizeof(huge), NULL, 0);
	expect_death(&b, "payload of 100000 bytes");
	bench_init(&b, state);
	vmm_send_raw(&b.v, reply, sizeof(reply), NULL, 0);
	expect_death(&b, "flags");
	bench_init(&b, state);
	vmm_send_raw(&b.v, huge, 7, NULL, 0);
	vmm_hang_up(&b.v);
	expect_death(&b, "closed inside a request");
	bench_init(&b, state);
	vmm_send_raw(&b.v, huge, 4, fds, 1);
	vmm_send_raw(&b.v, huge + 1, 8, fds, 2);
	expect_death(&b, "descriptors inside a request");
	bench_init(&b, state);
	uint32_t table[5] = { 5, 1, 8, 9, 0 };
	vmm_send_raw(&b.v, table, sizeof(table), NULL, 0);
	expect_death(&b, "number of memory regions");
}

static void test_truncated_memory(void **state)
{
	struct bench b;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	/* The rings themselves are gone: SIGBUS in the device, and not here. */
	assert_int_equal(ftruncate(b.g.memfd, 0), 0);
	guest_kick(&b.g, DEVICE_TX);
	expect_death(&b, "truncated");
}

#if CONFINE_WORKS

static void test_process_is_confined(void **state)
{
	struct bench b;
	bench_init(&b, state);
	vmm_plug(&b.v, &b.g);
	static const char *const keys[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_int_equal(read_kb(b.v.pid, "status", keys[i]), 0);
	assert_int_equal(read_kb(b.v.pid, "status", "NoNewPrivs:"), 1);
	assert_int_equal(read_kb(b.v.pid, "status", "Seccomp:"), 2);
	assert_int_equal(read_kb(b.v.pid, "status", "Threads:"), 1);
	bench_deinit(&b);
}

#endif

static int run_with(const char *const *options)
{
	char *argv[8] = { NULL };
	struct spawn_plan plan = { .program = HUSK_VSOCK, .argv = argv };
	cleanup_strv struct strv sv;
	pid_t pid;
	int status;
	strv_init(&sv, 8);
	assert_int_equal(strv_add(&sv, "husk-vsock"), 0);
	for (size_t i = 0; options[i]; i++)
		assert_int_equal(strv_add(&sv, options[i]), 0);
	memcpy(argv, sv.v, sv.n * sizeof(*argv));
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	return WEXITSTATUS(status);
}

static void test_arguments(void **state)
{
	static const struct {
		int expect;
		const char *options[5];
	} cases[] = {
		{ 2, { NULL } },
		{ 2, { "--vhost-fd=3", "--listen-fd=4" } },
		{ 2, { "--vhost-fd=3", "--listen-fd=4", "--guest-cid=2" } },
		{ 2, { "--vhost-fd=3", "--listen-fd=4", "--guest-cid=4294967295" } },
		{ 2, { "--vhost-fd=2", "--listen-fd=4", "--guest-cid=3" } },
		{ 2, { "--vhost-fd=x", "--listen-fd=4", "--guest-cid=3" } },
		{ 2, { "--vhost-fd=65536", "--listen-fd=4", "--guest-cid=3" } },
		{ 2, { "--vhost-fd=3", "--listen-fd=4", "--guest-cid=3", "extra" } },
		{ 2, { "--vhost-fd=3", "--listen-fd=4", "--guest-cid=3", "--what" } },
		{ 1, { "--vhost-fd=3", "--listen-fd=4", "--guest-cid=3" } }, /* not open */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(run_with(cases[i].options), cases[i].expect);
}

/* What it says of @vhost and @listener in the place of its sockets, and ends with 1. */
static void expect_refused(int vhost, int listener, const char *want)
{
	char name[] = "husk-vsock", one[] = "--vhost-fd=3", two[] = "--listen-fd=4",
	     cid[] = "--guest-cid=3", text[256] = "";
	char *argv[] = { name, one, two, cid, NULL };
	struct spawn_plan plan = { .program = HUSK_VSOCK, .argv = argv };
	int said[2], status = -1;
	size_t len = 0;
	pid_t pid;
	assert_int_equal(unix_pair(said), 0);
	assert_int_equal(spawn_plan_fd(&plan, said[1], STDERR_FILENO), 0);
	assert_int_equal(spawn_plan_fd(&plan, vhost, 3), 0);
	assert_int_equal(spawn_plan_fd(&plan, listener, 4), 0);
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	close(said[1]);
	assert_int_equal(fd_read_full(said[0], text, sizeof(text) - 1, &len), 0);
	close(said[0]);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_string_equal(text, want);
}

/* One that is connected takes no host programs, and the VMM's is none that any file could be. */
static void test_sockets(void **state)
{
	int ends[2], others[2];
	(void)state;
	cleanup_fd int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(unix_pair(ends), 0);
	assert_int_equal(unix_pair(others), 0);
	close(ends[1]); /* should it take them, it ends soon */
	close(others[1]);
	expect_refused(ends[0], others[0], "husk-vsock: --listen-fd=4: not a listening socket\n");
	expect_refused(ends[0], file, "husk-vsock: --listen-fd=4: not a listening socket\n");
	close(ends[0]);
	close(others[0]);
	cleanup_fd int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(listener, 1), 0);
	expect_refused(file, listener, "husk-vsock: --vhost-fd=3: not a socket\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_arguments),
		fixture_test(test_sockets),
		fixture_test(test_transfers),
		fixture_test(test_nobody_listens),
		fixture_test(test_stalled_reader),
		fixture_test(test_table_limit),
		fixture_test(test_dial_before_boot),
		fixture_test(test_pause_and_reset),
		fixture_test(test_broken_guest_does_not_kill),
		fixture_test(test_vmm_connects),
		fixture_test(test_vmm_errors),
		fixture_test(test_truncated_memory),
#if CONFINE_WORKS
		fixture_test(test_process_is_confined),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
