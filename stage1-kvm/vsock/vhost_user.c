/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/vhost_user.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <string.h>

#include "lib/base/macros.h"
#include "stage1-kvm/vsock/virtq.h"

#define BIT(n) (UINT64_C(1) << (n))

/* Flags of the header. */
#define FLAG_VERSION_MASK 0x3u
#define FLAG_VERSION_1    0x1u
#define FLAG_REPLY        0x4u
#define FLAG_NEED_REPLY   0x8u
#define FLAGS_KNOWN       0xfu

#define F_PROTOCOL_FEATURES  30
#define PROTOCOL_F_REPLY_ACK 3
#define PROTOCOL_F_CONFIG    9
#define VRING_INDEX_MASK     0xffu
#define VRING_NO_FD          0x100u
#define VRING_ADDR_F_LOG     0x1u
#define REGION_SIZE          32 /* bytes of one region in a memory table */
#define MEM_TABLE_HEAD       8
#define CONFIG_HEAD          12
#define VRING_ADDR_SIZE      40

#define OFFERED_FEATURES                                          \
	(BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_RING_F_EVENT_IDX) | \
	 BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(F_PROTOCOL_FEATURES))
#define OFFERED_PROTOCOL_FEATURES (BIT(PROTOCOL_F_REPLY_ACK) | BIT(PROTOCOL_F_CONFIG))

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
	GET_CONFIG = 24,
	SET_CONFIG = 25,
	REQUEST_MAX = SET_CONFIG,
};

/* A request that is being handled. Numbers in it are in the machine's byte order (protocol). */
struct call {
	struct vhost_user *vu;
	uint32_t request;
	const unsigned char *payload;
	size_t len;
	size_t n_fds;
	struct vhost_user_outcome *out;
	bool refused; /* the acknowledgement says "failed" */
	struct err *e;
};

static uint32_t vhost_user_get32(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t vhost_user_get64(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static void make_reply(struct vhost_user_outcome *out, uint32_t request, const void *payload,
		       size_t len)
{
	uint32_t head[3] = { request, FLAG_VERSION_1 | FLAG_REPLY, (uint32_t)len };
	memcpy(out->reply, head, sizeof(head));
	if (len > 0)
		memcpy(out->reply + sizeof(head), payload, len);
	out->reply_len = sizeof(head) + len;
}

static int vhost_user_fail(const struct call *c, const char *what)
{
	return err_set(c->e, -EPROTO, "vhost-user request %u: %s", c->request, what);
}

static int do_get_features(struct call *c)
{
	uint64_t v = OFFERED_FEATURES;
	make_reply(c->out, c->request, &v, sizeof(v));
	return 0;
}

static int do_set_features(struct call *c)
{
	uint64_t v = vhost_user_get64(c->payload);
	if (v & ~OFFERED_FEATURES)
		return vhost_user_fail(c, "features that were not offered");
	c->vu->features = v;
	/* Without protocol features there is no SET_VRING_ENABLE: queues are born enabled. */
	if (!(v & BIT(F_PROTOCOL_FEATURES)) && c->vu->protocol_features == 0)
		for (size_t i = 0; i < VHOST_USER_QUEUES; i++)
			c->vu->queue[i].enabled = true;
	return 0;
}

static int do_get_protocol_features(struct call *c)
{
	uint64_t v = OFFERED_PROTOCOL_FEATURES;
	make_reply(c->out, c->request, &v, sizeof(v));
	return 0;
}

static int do_set_protocol_features(struct call *c)
{
	uint64_t v = vhost_user_get64(c->payload);
	if (v & ~OFFERED_PROTOCOL_FEATURES)
		return vhost_user_fail(c, "protocol features that were not offered");
	c->vu->protocol_features = v;
	return 0;
}

/* Protocol features are negotiated before SET_OWNER and survive it. */
static int do_set_owner(struct call *c)
{
	uint64_t protocol_features = c->vu->protocol_features;
	vhost_user_init(c->vu, c->vu->guest_cid);
	c->vu->protocol_features = protocol_features;
	c->out->action = VHOST_USER_DO_RESET;
	return 0;
}

static int do_reset_owner(struct call *c)
{
	return do_set_owner(c);
}

static int do_set_mem_table(struct call *c)
{
	uint32_t n = vhost_user_get32(c->payload);
	if (n == 0 || n > GUEST_MEMORY_REGIONS_MAX)
		return vhost_user_fail(c, "wrong number of memory regions");
	/* Some front ends send the whole array, whatever its use. */
	if (c->len < MEM_TABLE_HEAD + n * REGION_SIZE)
		return vhost_user_fail(c, "payload too short for its memory regions");
	if (c->n_fds != n)
		return vhost_user_fail(c, "not one descriptor for each memory region");
	for (size_t i = 0; i < n; i++) {
		const unsigned char *p = c->payload + MEM_TABLE_HEAD + i * REGION_SIZE;
		c->out->regions[i] =
			(struct guest_region){ .guest_addr = vhost_user_get64(p),
					       .size = vhost_user_get64(p + 8),
					       .user_addr = vhost_user_get64(p + 16),
					       .file_offset = vhost_user_get64(p + 24) };
	}
	c->out->n_regions = n;
	c->out->action = VHOST_USER_DO_MAP;
	return 0;
}

/* The queue that the first number of the payload names; NULL after a complaint. */
static struct vhost_user_queue *find_queue(struct call *c)
{
	uint32_t index = vhost_user_get32(c->payload);
	if (index >= VHOST_USER_QUEUES) {
		vhost_user_fail(c, "no such queue");
		return NULL;
	}
	c->out->index = index;
	return &c->vu->queue[index];
}

static int do_set_vring_num(struct call *c)
{
	struct vhost_user_queue *q = find_queue(c);
	if (!q)
		return -EPROTO;
	uint32_t num = vhost_user_get32(c->payload + 4);
	/* The guest chooses it, and the VMM checks no more than the range. */
	if (num == 0 || num > VIRTQ_SIZE_MAX)
		return vhost_user_fail(c, "queue size not supported");
	if (q->kicked)
		return vhost_user_fail(c, "queue size changed while the queue runs");
	q->size = (uint16_t)num;
	q->has_size = true;
	c->out->action = VHOST_USER_DO_UPDATE;
	return 0;
}

static int do_set_vring_addr(struct call *c)
{
	struct vhost_user_queue *q = find_queue(c);
	if (!q)
		return -EPROTO;
	if (vhost_user_get32(c->payload + 4) & VRING_ADDR_F_LOG)
		return vhost_user_fail(c, "logging was not offered");
	q->desc = vhost_user_get64(c->payload + 8);
	q->used = vhost_user_get64(c->payload + 16);
	q->avail = vhost_user_get64(c->payload + 24);
	q->has_addr = true;
	c->out->action = VHOST_USER_DO_UPDATE;
	return 0;
}

static int do_set_vring_base(struct call *c)
{
	struct vhost_user_queue *q = find_queue(c);
	if (!q)
		return -EPROTO;
	uint32_t base = vhost_user_get32(c->payload + 4);
	if (base > UINT16_MAX)
		return vhost_user_fail(c, "available index beyond 16 bits");
	if (q->kicked)
		return vhost_user_fail(c, "available index changed while the queue runs");
	q->base = (uint16_t)base;
	c->out->action = VHOST_USER_DO_UPDATE;
	return 0;
}

static int do_get_vring_base(struct call *c)
{
	struct vhost_user_queue *q = find_queue(c);
	if (!q)
		return -EPROTO;
	q->kicked = false;
	c->out->action = VHOST_USER_DO_STOP;
	return 0;
}

static int do_set_vring_enable(struct call *c)
{
	struct vhost_user_queue *q = find_queue(c);
	if (!q)
		return -EPROTO;
	uint32_t on = vhost_user_get32(c->payload + 4);
	if (on > 1)
		return vhost_user_fail(c, "neither on nor off");
	q->enabled = on;
	c->out->action = VHOST_USER_DO_UPDATE;
	return 0;
}

static int set_vring_fd(struct call *c, enum vhost_user_action action)
{
	uint64_t v = vhost_user_get64(c->payload);
	if (v & ~(uint64_t)(VRING_INDEX_MASK | VRING_NO_FD))
		return vhost_user_fail(c, "unknown flags of a queue");
	if ((v & VRING_INDEX_MASK) >= VHOST_USER_QUEUES)
		return vhost_user_fail(c, "no such queue");
	if (c->n_fds != (v & VRING_NO_FD ? 0 : 1))
		return vhost_user_fail(c, "wrong number of descriptors");
	c->out->index = v & VRING_INDEX_MASK;
	c->out->action = action;
	return 0;
}

static int do_set_vring_kick(struct call *c)
{
	int r = set_vring_fd(c, VHOST_USER_DO_SET_KICK);
	if (r < 0)
		return r;
	if (c->n_fds == 0)
		return vhost_user_fail(c, "polling a queue is not supported");
	c->vu->queue[c->out->index].kicked = true;
	return 0;
}

static int do_set_vring_call(struct call *c)
{
	return set_vring_fd(c, VHOST_USER_DO_SET_CALL);
}

static int do_set_vring_err(struct call *c)
{
	return set_vring_fd(c, VHOST_USER_DO_SET_ERR);
}

/* A range that is not ours is answered by an empty payload, as the protocol wants it. */
static int do_get_config(struct call *c)
{
	uint32_t offset = vhost_user_get32(c->payload);
	uint32_t size = vhost_user_get32(c->payload + 4);
	if (size > VHOST_USER_CONFIG_MAX || c->len != CONFIG_HEAD + (size_t)size)
		return vhost_user_fail(c, "wrong size");
	if (offset > VHOST_USER_CONFIG_SIZE || size > VHOST_USER_CONFIG_SIZE - offset) {
		make_reply(c->out, c->request, NULL, 0);
		return 0;
	}
	uint64_t cid = htole64(c->vu->guest_cid);
	unsigned char answer[CONFIG_HEAD + VHOST_USER_CONFIG_SIZE];
	memcpy(answer, c->payload, CONFIG_HEAD);
	memcpy(answer + CONFIG_HEAD, (const unsigned char *)&cid + offset, size);
	make_reply(c->out, c->request, answer, CONFIG_HEAD + size);
	return 0;
}

/* The guest's CID is not for writing. */
static int do_set_config(struct call *c)
{
	c->refused = true;
	return 0;
}

/* Requests by number. Payloads are at least @min bytes, and no more unless @variable. */
static const struct {
	int (*handle)(struct call *c);
	size_t min;
	bool variable;
	bool takes_fds;
} requests[REQUEST_MAX + 1] = {
	[GET_FEATURES] = { do_get_features, 0, false, false },
	[SET_FEATURES] = { do_set_features, 8, false, false },
	[SET_OWNER] = { do_set_owner, 0, false, false },
	[RESET_OWNER] = { do_reset_owner, 0, false, false },
	[SET_MEM_TABLE] = { do_set_mem_table, MEM_TABLE_HEAD, true, true },
	[SET_VRING_NUM] = { do_set_vring_num, 8, false, false },
	[SET_VRING_ADDR] = { do_set_vring_addr, VRING_ADDR_SIZE, false, false },
	[SET_VRING_BASE] = { do_set_vring_base, 8, false, false },
	[GET_VRING_BASE] = { do_get_vring_base, 8, false, false },
	[SET_VRING_KICK] = { do_set_vring_kick, 8, false, true },
	[SET_VRING_CALL] = { do_set_vring_call, 8, false, true },
	[SET_VRING_ERR] = { do_set_vring_err, 8, false, true },
	[GET_PROTOCOL_FEATURES] = { do_get_protocol_features, 0, false, false },
	[SET_PROTOCOL_FEATURES] = { do_set_protocol_features, 8, false, false },
	[SET_VRING_ENABLE] = { do_set_vring_enable, 8, false, false },
	[GET_CONFIG] = { do_get_config, CONFIG_HEAD, true, false },
	[SET_CONFIG] = { do_set_config, CONFIG_HEAD, true, false },
};

void vhost_user_init(struct vhost_user *vu, uint64_t guest_cid)
{
	*vu = (struct vhost_user){ .guest_cid = guest_cid };
}

int vhost_user_payload_size(const unsigned char header[VHOST_USER_HEADER_SIZE], size_t *ret,
			    struct err *e)
{
	uint32_t flags = vhost_user_get32(header + 4);
	uint32_t size = vhost_user_get32(header + 8);
	if ((flags & FLAG_VERSION_MASK) != FLAG_VERSION_1 || (flags & FLAG_REPLY) ||
	    (flags & ~FLAGS_KNOWN))
		return err_set(e, -EPROTO, "vhost-user request %u: flags %#x",
			       vhost_user_get32(header), flags);
	if (size > VHOST_USER_PAYLOAD_MAX)
		return err_set(e, -EPROTO, "vhost-user request %u: payload of %u bytes",
			       vhost_user_get32(header), size);
	*ret = size;
	return 0;
}

static int check_request(struct call *c)
{
	if (c->request > REQUEST_MAX || !requests[c->request].handle)
		return vhost_user_fail(c, "unknown, or a feature that was not negotiated");
	if (c->len < requests[c->request].min ||
	    (c->len > requests[c->request].min && !requests[c->request].variable))
		return vhost_user_fail(c, "wrong payload size");
	if (c->n_fds > 0 && !requests[c->request].takes_fds)
		return vhost_user_fail(c, "unexpected descriptors");
	return 0;
}

int vhost_user_handle(struct vhost_user *vu, const unsigned char *message, size_t len, size_t n_fds,
		      struct vhost_user_outcome *ret, struct err *e)
{
	size_t payload = 0;
	if (len < VHOST_USER_HEADER_SIZE)
		return err_set(e, -EPROTO, "vhost-user request of %zu bytes", len);
	int r = vhost_user_payload_size(message, &payload, e);
	if (r < 0)
		return r;
	struct call c = { .vu = vu,
			  .request = vhost_user_get32(message),
			  .payload = message + VHOST_USER_HEADER_SIZE,
			  .len = payload,
			  .n_fds = n_fds,
			  .out = ret,
			  .e = e };
	if (len != VHOST_USER_HEADER_SIZE + payload)
		return vhost_user_fail(&c, "cut off");
	*ret = (struct vhost_user_outcome){ .action = VHOST_USER_DO_NOTHING };
	r = check_request(&c);
	if (r == 0)
		r = requests[c.request].handle(&c);
	if (r < 0)
		return r;
	bool wants_ack = (vhost_user_get32(message + 4) & FLAG_NEED_REPLY) &&
			 (vu->protocol_features & BIT(PROTOCOL_F_REPLY_ACK));
	if (wants_ack && ret->reply_len == 0 && ret->action != VHOST_USER_DO_STOP) {
		uint64_t status = c.refused;
		make_reply(ret, c.request, &status, sizeof(status));
	}
	return 0;
}

void vhost_user_reply_base(size_t index, uint16_t base, struct vhost_user_outcome *ret)
{
	uint32_t state[2] = { (uint32_t)index, base };
	make_reply(ret, GET_VRING_BASE, state, sizeof(state));
}

bool vhost_user_queue_runs(const struct vhost_user *vu, size_t index)
{
	const struct vhost_user_queue *q = &vu->queue[index];
	return q->has_size && q->has_addr && q->kicked && q->enabled;
}
