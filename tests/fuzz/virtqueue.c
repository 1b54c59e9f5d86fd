/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole vsock device against a hostile guest: the input is a script of what the guest does to
 * its memory and queues and what host programs do meanwhile; the real device runs in between.
 *
 * Guest memory is two adjacent regions that lie apart in our address space with unmapped pages
 * around, so an access beyond a region is a crash.
 */
#include <linux/virtio_ring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vsock/device.h"
#include "stage1-kvm/vsock/packet.h"

#define CID       5u
#define BASE      UINT64_C(0x40000000)
#define USER      UINT64_C(0x7f0000000000)
#define REGION    ((size_t)64 << 10)
#define MEMORY    (2 * REGION)
#define PAGE      ((size_t)4096)
#define HOSTS     4
#define STEPS_MAX 400 /* keeps a script short enough to be understood */

/* Layout: queues at the start of the memory, then buffers. */
#define QUEUE_AT(i) ((size_t)(i)*0x2000)
#define AVAIL_AT    0x1000
#define USED_AT     0x1400
#define TABLE_AT    0x6000
#define BUFFERS_AT  0x8000

struct script {
	const uint8_t *p;
	size_t left;
};

struct world {
	struct loop loop;
	struct loop_timer tick;
	struct device *d;
	char *mem; /* all of the memory as the fuzzer writes it */
	char *guard[2];
	uint16_t size;
	uint64_t features;
	int kick;
	int host[HOSTS];
	struct vsock_header last; /* the last packet from the device */
	uint16_t seen_rx;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take8(struct script *s)
{
	if (s->left == 0)
		return 0;
	s->left--;
	return *s->p++;
}

static uint16_t take16(struct script *s)
{
	uint16_t hi = take8(s);
	return (uint16_t)(hi << 8 | take8(s));
}

static uint32_t take32(struct script *s)
{
	uint32_t hi = take16(s);
	return hi << 16 | take16(s);
}

static void on_tick(void *ctx)
{
	(void)ctx;
}

static void on_report(const char *text)
{
	if (strlen(text) == 0)
		abort();
}

/* A memory file that lives as long as the process; its content is set anew for each script. */
static int memory_file(void)
{
	static int fd = -EBADF;
	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)MEMORY) < 0)
			abort();
	}
	return fd;
}

static void attach_memory(struct world *w)
{
	struct guest_memory m = { .n = 2 };
	for (size_t i = 0; i < 2; i++) {
		char *area = mmap(NULL, REGION + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		char *at = area == MAP_FAILED ? MAP_FAILED
					      : mmap(area + PAGE, REGION, PROT_READ | PROT_WRITE,
						     MAP_SHARED | MAP_FIXED, memory_file(),
						     (off_t)(i * REGION));
		if (at == MAP_FAILED)
			abort();
		m.host[i] = at;
		m.region[i] = (struct guest_region){ .guest_addr = BASE + i * REGION,
						     .size = REGION,
						     .user_addr = USER + i * REGION,
						     .file_offset = i * REGION };
		if (w->guard[i]) {
			munmap(w->guard[i], PAGE);
			munmap(w->guard[i] + PAGE + REGION, PAGE);
		}
		w->guard[i] = area;
	}
	device_set_memory(w->d, &m);
}

static void start_queue(struct world *w, size_t i, uint16_t base)
{
	uint64_t at = USER + QUEUE_AT(i);
	struct device_queue_plan plan = { .size = w->size,
					  .base = base,
					  .desc = at,
					  .avail = at + AVAIL_AT,
					  .used = at + USED_AT,
					  .features = w->features };
	device_start_queue(w->d, i, &plan);
}

static void attach(struct world *w)
{
	attach_memory(w);
	for (size_t i = 0; i < DEVICE_QUEUES; i++) {
		device_set_kick(w->d, i, dup(w->kick));
		device_set_call(w->d, i, dup(w->kick));
		start_queue(w, i, 0);
	}
	w->seen_rx = 0;
}

static struct vring_desc *desc_of(struct world *w, size_t queue, uint16_t i)
{
	char *p = w->mem + QUEUE_AT(queue) + (size_t)(i % w->size) * sizeof(struct vring_desc);
	return (struct vring_desc *)(void *)p;
}

static struct vring_avail *avail_of(struct world *w, size_t queue)
{
	return (struct vring_avail *)(void *)(w->mem + QUEUE_AT(queue) + AVAIL_AT);
}

static void offer(struct world *w, size_t queue, uint16_t head)
{
	struct vring_avail *a = avail_of(w, queue);
	a->ring[a->idx % w->size] = head;
	a->idx++;
}

/* Anything, anywhere. */
static void step_poke(struct world *w, struct script *s)
{
	size_t at = take32(s) % MEMORY, len = take8(s);
	for (size_t i = 0; i < len && at + i < MEMORY; i++)
		w->mem[at + i] = (char)take8(s);
}

/* A descriptor with fields that are mostly sensible. */
static void step_descriptor(struct world *w, struct script *s)
{
	uint8_t choice = take8(s);
	struct vring_desc *d = desc_of(w, choice & 1, take8(s));
	if (choice & 2)
		d = (struct vring_desc *)(void *)(w->mem + TABLE_AT + (take8(s) % 64) * sizeof(*d));
	d->addr = BASE + (choice & 4 ? TABLE_AT : take32(s) % (MEMORY + 64));
	d->len = choice & 8 ? take32(s) : (choice & 16 ? take8(s) * 16u : take16(s));
	d->flags = take8(s);
	d->next = choice & 32 ? take16(s) : take8(s) % 64;
}

static void step_offer_rx(struct world *w, struct script *s)
{
	uint8_t n = take8(s) % 16;
	uint16_t len = (uint16_t)(take16(s) % 4096);
	for (uint8_t i = 0; i < n; i++) {
		uint16_t at = avail_of(w, DEVICE_RX)->idx;
		*desc_of(w, DEVICE_RX, at) =
			(struct vring_desc){ .addr = BASE + BUFFERS_AT + (at % 16) * (uint64_t)4096,
					     .len = 45u + len,
					     .flags = VRING_DESC_F_WRITE };
		offer(w, DEVICE_RX, at % w->size);
	}
}

/* A packet for the connection that the device spoke of last, or for any. */
static void step_packet(struct world *w, struct script *s)
{
	uint8_t choice = take8(s);
	uint16_t len = take16(s);
	struct vsock_header h = { .src_cid = choice & 1 ? take8(s) : CID,
				  .dst_cid = choice & 2 ? take8(s) : VSOCK_CID_HOST,
				  .src_port = choice & 4 ? take32(s) : w->last.dst_port,
				  .dst_port = choice & 4 ? take32(s) : w->last.src_port,
				  .len = choice & 8 ? take32(s) : len,
				  .type = choice & 16 ? take8(s) : VSOCK_TYPE_STREAM,
				  .op = take8(s),
				  .flags = take8(s),
				  .buf_alloc = choice & 32 ? take32(s) : 65536,
				  .fwd_cnt = choice & 64 ? take32(s) : 0 };
	uint16_t at = avail_of(w, DEVICE_TX)->idx;
	size_t where = BUFFERS_AT + (at % 4) * 16384u;
	vsock_header_encode(&h, (unsigned char *)w->mem + where);
	*desc_of(w, DEVICE_TX, at) =
		(struct vring_desc){ .addr = BASE + where,
				     .len = VSOCK_HEADER_SIZE + (uint32_t)len };
	offer(w, DEVICE_TX, at % w->size);
}

static void note_last_packet(struct world *w)
{
	struct vring_used *u =
		(struct vring_used *)(void *)(w->mem + QUEUE_AT(DEVICE_RX) + USED_AT);
	if (u->idx == w->seen_rx)
		return;
	w->seen_rx = u->idx;
	struct vring_used_elem e = u->ring[(uint16_t)(u->idx - 1) % w->size];
	uint64_t at = desc_of(w, DEVICE_RX, (uint16_t)e.id)->addr - BASE;
	if (at < MEMORY - VSOCK_HEADER_SIZE)
		vsock_header_decode((const unsigned char *)w->mem + at, &w->last);
}

static void step_run(struct world *w, struct script *s)
{
	uint64_t one = 1;
	if (write(w->kick, &one, sizeof(one)) < 0)
		abort();
	for (int i = take8(s) % 4; i >= 0; i--) {
		loop_timer_arm(&w->loop, &w->tick, 0, on_tick, NULL);
		if (loop_turn(&w->loop) < 0 || device_pump(w->d) < 0)
			abort();
	}
	note_last_packet(w);
}

static void step_host(struct world *w, struct script *s)
{
	static char mem[8192];
	int *host = &w->host[take8(s) % HOSTS];
	int fds[2];
	switch (take8(s) % 6) {
	case 0: /* dial */
		*host = fd_close(*host);
		if (unix_pair(fds) < 0 || fd_set_nonblock(fds[0], true) < 0)
			abort();
		if (device_add_host(w->d, fds[0]) < 0)
			fd_close(fds[0]);
		*host = fds[1];
		send(*host, "CONNECT 1\nxyz", (size_t)9 + take8(s) % 5,
		     MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 1:
		send(*host, mem, take16(s) % sizeof(mem), MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 2:
		recv(*host, mem, sizeof(mem), MSG_DONTWAIT);
		break;
	case 3:
		shutdown(*host, take8(s) % 3);
		break;
	case 4:
		*host = fd_close(*host);
		break;
	default: /* a small buffer, so that backlogs appear */
		setsockopt(*host, SOL_SOCKET, SO_RCVBUF, &(int){ 1 }, sizeof(int));
		send(*host, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	}
}

static void step_control(struct world *w, struct script *s)
{
	uint8_t choice = take8(s);
	size_t i = choice & 1;
	switch (choice >> 1 & 3) {
	case 0:
		start_queue(w, i, device_stop_queue(w->d, i));
		break;
	case 1:
		device_stop_queue(w->d, i);
		start_queue(w, i, take16(s));
		break;
	case 2:
		attach_memory(w);
		break;
	default:
		device_reset(w->d);
		memset(w->mem, 0, BUFFERS_AT);
		attach(w);
		break;
	}
}

static void run_script(struct world *w, struct script *s)
{
	static void (*const steps[])(struct world * w, struct script * s) = {
		step_poke, step_descriptor, step_offer_rx, step_packet,
		step_run,  step_host,       step_control,  step_run,
	};
	for (int i = 0; i < STEPS_MAX && s->left > 0; i++) {
		uint8_t op = take8(s);
		if (op >= 0x80) /* a descriptor as the head of a chain */
			offer(w, op & 1, op >> 1 & 0x3f);
		else
			steps[op % ARRAY_SIZE(steps)](w, s);
	}
}

static void world_init(struct world *w, struct script *s)
{
	static const uint16_t sizes[] = { 1, 8, 64, 128 };
	uint8_t choice = take8(s);
	const struct device_config config = {
		.listen_fd = -EBADF, .guest_cid = CID, .max_streams = HOSTS, .report = on_report
	};
	*w = (struct world){ .size = sizes[choice & 3], .kick = eventfd(0, EFD_NONBLOCK) };
	w->features = (uint64_t)(choice >> 2 & 3) << VIRTIO_RING_F_INDIRECT_DESC;
	for (size_t i = 0; i < HOSTS; i++)
		w->host[i] = -EBADF;
	w->mem = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file(), 0);
	if (w->mem == MAP_FAILED || w->kick < 0 || loop_init(&w->loop) < 0 ||
	    device_new(&w->loop, &config, &w->d) < 0)
		abort();
	memset(w->mem, 0, MEMORY);
	attach(w);
}

static void world_deinit(struct world *w)
{
	device_free(w->d);
	loop_deinit(&w->loop);
	for (size_t i = 0; i < HOSTS; i++)
		fd_close(w->host[i]);
	fd_close(w->kick);
	munmap(w->mem, MEMORY);
	for (size_t i = 0; i < 2; i++)
		munmap(w->guard[i], REGION + 2 * PAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = { .p = data, .left = size };
	struct world w;
	world_init(&w, &s);
	run_script(&w, &s);
	world_deinit(&w);
	return 0;
}
