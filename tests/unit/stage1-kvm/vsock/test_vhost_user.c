/* SPDX-License-Identifier: Apache-2.0 */
/* vhost-user: the conversation QEMU has with us, and everything it must not say. */
#include "stage1-kvm/vsock/vhost_user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stage1-kvm/vsock/virtq.h"
#include "tests/support/fixture.h"

#define CID          UINT64_C(0x1234)
#define ACK          9u /* version 1, reply wanted */
#define PLAIN        1u
#define F_VERSION_1  (UINT64_C(1) << 32)
#define F_EVENT_IDX  (UINT64_C(1) << 29)
#define F_INDIRECT   (UINT64_C(1) << 28)
#define F_PROTOCOL   (UINT64_C(1) << 30)
#define P_ACK_CONFIG (UINT64_C(1) << 3 | UINT64_C(1) << 9)
#define REGION_WORDS 4
#define TABLE_MAX    (1 + REGION_WORDS * (GUEST_MEMORY_REGIONS_MAX + 1))

static size_t make(unsigned char *m, uint32_t request, uint32_t flags, const void *payload,
		   size_t len)
{
	uint32_t head[3] = { request, flags, (uint32_t)len };
	memcpy(m, head, sizeof(head));
	if (len > 0)
		memcpy(m + sizeof(head), payload, len);
	return sizeof(head) + len;
}

/* Sends a request; the error text is checked to be there exactly on failure. */
static int call(struct vhost_user *vu, uint32_t request, uint32_t flags, const void *payload,
		size_t len, size_t n_fds, struct vhost_user_outcome *out)
{
	unsigned char m[VHOST_USER_MESSAGE_MAX];
	struct err e = ERR_INIT;
	int r = vhost_user_handle(vu, m, make(m, request, flags, payload, len), n_fds, out, &e);
	assert_true(r == 0 || r == -EPROTO);
	assert_int_equal(e.code, r);
	return r;
}

static void assert_reply(const struct vhost_user_outcome *out, uint32_t request,
			 const void *payload, size_t len)
{
	unsigned char m[VHOST_USER_MESSAGE_MAX];
	assert_int_equal(out->reply_len, make(m, request, 5, payload, len));
	assert_memory_equal(out->reply, m, out->reply_len);
}

static void assert_reply_u64(const struct vhost_user_outcome *out, uint32_t request, uint64_t v)
{
	assert_reply(out, request, &v, sizeof(v));
}

static void start_session(struct vhost_user *vu)
{
	struct vhost_user_outcome out;
	uint64_t v = P_ACK_CONFIG;
	vhost_user_init(vu, CID);
	assert_int_equal(call(vu, 16, PLAIN, &v, 8, 0, &out), 0);
	assert_int_equal(call(vu, 3, PLAIN, NULL, 0, 0, &out), 0);
	assert_int_equal(out.action, VHOST_USER_DO_RESET);
	v = F_VERSION_1 | F_PROTOCOL;
	assert_int_equal(call(vu, 2, PLAIN, &v, 8, 0, &out), 0);
}

/* The order of QEMU 7.2, which is what the device meets in practice. */
static void test_conversation_with_qemu(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint64_t v;
	(void)state;
	vhost_user_init(&vu, CID);
	assert_int_equal(call(&vu, 1, PLAIN, NULL, 0, 0, &out), 0);
	assert_reply_u64(&out, 1, F_VERSION_1 | F_EVENT_IDX | F_INDIRECT | F_PROTOCOL);
	assert_int_equal(call(&vu, 15, PLAIN, NULL, 0, 0, &out), 0);
	assert_reply_u64(&out, 15, P_ACK_CONFIG);
	v = P_ACK_CONFIG;
	assert_int_equal(call(&vu, 16, PLAIN, &v, 8, 0, &out), 0);
	assert_int_equal(out.reply_len, 0);
	assert_int_equal(call(&vu, 3, PLAIN, NULL, 0, 0, &out), 0);
	assert_int_equal(out.action, VHOST_USER_DO_RESET);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(call(&vu, 13, PLAIN, &i, 8, 1, &out), 0);
		assert_int_equal(out.action, VHOST_USER_DO_SET_CALL);
		assert_int_equal(out.index, i);
		assert_int_equal(call(&vu, 14, PLAIN, &i, 8, 1, &out), 0);
		assert_int_equal(out.action, VHOST_USER_DO_SET_ERR);
	}
	unsigned char config[12 + 8] = { 0, 0, 0, 0, 8 };
	assert_int_equal(call(&vu, 24, PLAIN, config, sizeof(config), 0, &out), 0);
	config[12] = 0x34;
	config[13] = 0x12;
	assert_reply(&out, 24, config, sizeof(config));
	v = F_VERSION_1 | F_EVENT_IDX | F_PROTOCOL;
	assert_int_equal(call(&vu, 2, ACK, &v, 8, 0, &out), 0);
	assert_reply_u64(&out, 2, 0);
	assert_int_equal(vu.features, v);
	uint64_t table[1 + 2 * REGION_WORDS] = { 2,        0,        0xa0000,  0x7000,  0,
						 0x100000, 0xf00000, 0x107000, 0x100000 };
	assert_int_equal(call(&vu, 5, ACK, table, sizeof(table), 2, &out), 0);
	assert_int_equal(out.action, VHOST_USER_DO_MAP);
	assert_int_equal(out.n_regions, 2);
	assert_int_equal(out.regions[1].guest_addr, 0x100000);
	assert_int_equal(out.regions[1].size, 0xf00000);
	assert_int_equal(out.regions[1].user_addr, 0x107000);
	assert_int_equal(out.regions[1].file_offset, 0x100000);
	assert_reply_u64(&out, 5, 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t num[2] = { i, 128 }, base[2] = { i, 0 }, on[2] = { i, 1 };
		uint64_t addr[5] = { i, 0x1000, 0x3000, 0x2000, 0 };
		v = i;
		assert_int_equal(call(&vu, 8, PLAIN, num, 8, 0, &out), 0);
		assert_int_equal(call(&vu, 10, PLAIN, base, 8, 0, &out), 0);
		assert_int_equal(call(&vu, 9, PLAIN, addr, 40, 0, &out), 0);
		assert_int_equal(vu.queue[i].desc, 0x1000);
		assert_int_equal(vu.queue[i].used, 0x3000);
		assert_int_equal(vu.queue[i].avail, 0x2000);
		assert_int_equal(call(&vu, 12, PLAIN, &v, 8, 1, &out), 0);
		assert_int_equal(out.action, VHOST_USER_DO_SET_KICK);
		assert_false(vhost_user_queue_runs(&vu, i)); /* not enabled yet */
		assert_int_equal(call(&vu, 18, PLAIN, on, 8, 0, &out), 0);
		assert_int_equal(out.action, VHOST_USER_DO_UPDATE);
		assert_true(vhost_user_queue_runs(&vu, i));
	}
	uint32_t stop[2] = { 1, 0 };
	assert_int_equal(call(&vu, 11, PLAIN, stop, 8, 0, &out), 0);
	assert_int_equal(out.action, VHOST_USER_DO_STOP);
	assert_int_equal(out.index, 1);
	assert_false(vhost_user_queue_runs(&vu, 1));
	assert_true(vhost_user_queue_runs(&vu, 0));
	vhost_user_reply_base(1, 65535, &out);
	stop[1] = 65535;
	assert_reply(&out, 11, stop, sizeof(stop));
}

/* A device that is removed and added again begins with SET_OWNER. */
static void test_new_owner_forgets(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint32_t num[2] = { 0, 128 };
	(void)state;
	start_session(&vu);
	assert_int_equal(call(&vu, 8, PLAIN, num, 8, 0, &out), 0);
	assert_int_equal(call(&vu, 4, ACK, NULL, 0, 0, &out), 0);
	assert_int_equal(out.action, VHOST_USER_DO_RESET);
	assert_false(vu.queue[0].has_size);
	assert_int_equal(vu.features, 0);
	assert_int_equal(vu.guest_cid, CID);
	assert_int_equal(vu.protocol_features, P_ACK_CONFIG);
}

static void test_queues_without_protocol_features(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint64_t v = F_VERSION_1;
	(void)state;
	vhost_user_init(&vu, CID);
	assert_int_equal(call(&vu, 2, ACK, &v, 8, 0, &out), 0);
	assert_int_equal(out.reply_len, 0); /* acknowledgements were not negotiated */
	assert_true(vu.queue[0].enabled && vu.queue[1].enabled);
}

static void test_configuration_space(void **state)
{
	static const struct {
		uint32_t offset, size;
		bool ours;
	} cases[] = {
		{ 0, 8, true },  { 4, 4, true },           { 8, 0, true },
		{ 7, 1, true },  { 0, 9, false },          { 8, 1, false },
		{ 9, 0, false }, { UINT32_MAX, 1, false }, { 0, VHOST_USER_CONFIG_MAX, false }
	};
	struct vhost_user vu;
	struct vhost_user_outcome out;
	(void)state;
	start_session(&vu);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char m[12 + VHOST_USER_CONFIG_MAX] = { 0 };
		uint32_t head[3] = { cases[i].offset, cases[i].size, 0 };
		memcpy(m, head, sizeof(head));
		assert_int_equal(call(&vu, 24, PLAIN, m, 12 + cases[i].size, 0, &out), 0);
		assert_int_equal(out.reply_len,
				 VHOST_USER_HEADER_SIZE + (cases[i].ours ? 12 + cases[i].size : 0));
	}
	uint32_t set[5] = { 0, 8, 0, 1, 1 };
	assert_int_equal(call(&vu, 25, ACK, set, sizeof(set), 0, &out), 0);
	assert_reply_u64(&out, 25, 1); /* refused */
}

static void test_memory_table_limit(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint64_t table[TABLE_MAX] = { GUEST_MEMORY_REGIONS_MAX };
	size_t len = 8 + (size_t)32 * GUEST_MEMORY_REGIONS_MAX;
	(void)state;
	start_session(&vu);
	assert_int_equal(call(&vu, 5, PLAIN, table, len, 8, &out), 0);
	assert_int_equal(out.n_regions, 8);
	assert_int_equal(call(&vu, 5, PLAIN, table, len, 7, &out), -EPROTO);
	assert_int_equal(call(&vu, 5, PLAIN, table, len - 1, 8, &out), -EPROTO);
	table[0] = GUEST_MEMORY_REGIONS_MAX + 1;
	assert_int_equal(call(&vu, 5, PLAIN, table, len, 9, &out), -EPROTO);
	table[0] = UINT32_MAX;
	assert_int_equal(call(&vu, 5, PLAIN, table, len, 8, &out), -EPROTO);
	table[0] = 0;
	assert_int_equal(call(&vu, 5, PLAIN, table, 8, 0, &out), -EPROTO);
}

/* Each of these ends the session. */
static void test_protocol_errors(void **state)
{
	static const struct {
		uint32_t request;
		size_t len, n_fds;
		uint64_t payload[5];
	} cases[] = {
		{ 0, 0, 0, { 0 } },  /* no such request */
		{ 26, 8, 0, { 0 } }, /* beyond the last we know */
		{ UINT32_MAX, 0, 0, { 0 } },
		{ 6, 16, 1, { 0 } },                /* SET_LOG_BASE: not offered */
		{ 17, 0, 0, { 0 } },                /* GET_QUEUE_NUM: not offered */
		{ 21, 0, 1, { 0 } },                /* SET_SLAVE_REQ_FD: not offered */
		{ 1, 8, 0, { 0 } },                 /* payload where none belongs */
		{ 3, 0, 1, { 0 } },                 /* descriptor where none belongs */
		{ 2, 7, 0, { 0 } },                 /* short */
		{ 2, 9, 0, { 0 } },                 /* long */
		{ 2, 8, 0, { UINT64_C(1) << 26 } }, /* a feature that was not offered */
		{ 16, 8, 0, { 1 } },
		{ 8, 8, 0, { UINT64_C(2) | UINT64_C(128) << 32 } }, /* queue 2 */
		{ 8, 8, 0, { UINT32_MAX | UINT64_C(128) << 32 } },
		{ 8, 8, 0, { 0 } }, /* size 0 */
		{ 8, 8, 0, { (UINT64_C(1) + VIRTQ_SIZE_MAX) << 32 } },
		{ 9, 40, 0, { 2 } },
		{ 9, 40, 0, { UINT64_C(1) << 32 } }, /* logging */
		{ 10, 8, 0, { UINT64_C(65536) << 32 } },
		{ 10, 8, 0, { 2 } },
		{ 11, 8, 0, { 2 } },
		{ 12, 8, 0, { 0 } }, /* kick without descriptor */
		{ 12, 8, 2, { 0 } },
		{ 12, 8, 0, { 0x100 } }, /* polling */
		{ 12, 8, 1, { 2 } },
		{ 13, 8, 1, { 0x100 } },
		{ 13, 8, 1, { 0x200 } },
		{ 13, 8, 1, { 0xff } },
		{ 14, 8, 2, { 1 } },
		{ 18, 8, 0, { UINT64_C(2) << 32 } },
		{ 24, 11, 0, { 0 } },
		{ 24, 20, 0, { UINT64_C(9) << 32 } }, /* size is not that of the payload */
		{ 24, 12, 0, { (uint64_t)UINT32_MAX << 32 } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vhost_user vu;
		struct vhost_user_outcome out;
		start_session(&vu);
		assert_int_equal(call(&vu, cases[i].request, PLAIN, cases[i].payload, cases[i].len,
				      cases[i].n_fds, &out),
				 -EPROTO);
	}
}

static void test_queue_size_limit(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint32_t num[2] = { 0, VIRTQ_SIZE_MAX };
	(void)state;
	start_session(&vu);
	assert_int_equal(call(&vu, 8, PLAIN, num, 8, 0, &out), 0);
	num[1] = 99; /* the guest's choice, and its fault: see the device */
	assert_int_equal(call(&vu, 8, PLAIN, num, 8, 0, &out), 0);
}

static void test_running_queue_keeps_its_size(void **state)
{
	struct vhost_user vu;
	struct vhost_user_outcome out;
	uint64_t index = 0;
	uint32_t num[2] = { 0, 64 }, base[2] = { 0, 5 };
	(void)state;
	start_session(&vu);
	assert_int_equal(call(&vu, 12, PLAIN, &index, 8, 1, &out), 0);
	assert_int_equal(call(&vu, 8, PLAIN, num, 8, 0, &out), -EPROTO);
	assert_int_equal(call(&vu, 10, PLAIN, base, 8, 0, &out), -EPROTO);
	uint64_t no_fd = 0x101;
	assert_int_equal(call(&vu, 13, PLAIN, &no_fd, 8, 0, &out), 0); /* masked notifications */
	assert_int_equal(out.action, VHOST_USER_DO_SET_CALL);
	assert_int_equal(out.index, 1);
}

static void test_headers(void **state)
{
	static const struct {
		uint32_t flags, size;
		int expect;
	} cases[] = {
		{ 1, 0, 0 },
		{ 9, VHOST_USER_PAYLOAD_MAX, 0 },
		{ 1, VHOST_USER_PAYLOAD_MAX + 1, -EPROTO },
		{ 1, UINT32_MAX, -EPROTO },
		{ 0, 0, -EPROTO },
		{ 2, 0, -EPROTO },
		{ 5, 0, -EPROTO },  /* a reply */
		{ 17, 0, -EPROTO }, /* unknown flag */
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char m[VHOST_USER_HEADER_SIZE];
		struct err e = ERR_INIT;
		size_t size = 4711;
		make(m, 1, cases[i].flags, NULL, 0);
		memcpy(m + 8, &cases[i].size, 4);
		assert_int_equal(vhost_user_payload_size(m, &size, &e), cases[i].expect);
		assert_int_equal(size, cases[i].expect == 0 ? cases[i].size : 4711);
	}
}

static void test_cut_off_messages(void **state)
{
	unsigned char m[VHOST_USER_MESSAGE_MAX];
	uint64_t v = 0;
	size_t len = make(m, 2, PLAIN, &v, 8);
	(void)state;
	for (size_t i = 0; i < len; i++) {
		struct vhost_user vu;
		struct vhost_user_outcome out;
		struct err e = ERR_INIT;
		start_session(&vu);
		assert_int_equal(vhost_user_handle(&vu, m, i, 0, &out, &e), -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_conversation_with_qemu),
		fixture_test(test_new_owner_forgets),
		fixture_test(test_queues_without_protocol_features),
		fixture_test(test_configuration_space),
		fixture_test(test_memory_table_limit),
		fixture_test(test_protocol_errors),
		fixture_test(test_queue_size_limit),
		fixture_test(test_running_queue_keeps_its_size),
		fixture_test(test_headers),
		fixture_test(test_cut_off_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
