/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a vsock packet: golden bytes in both directions. */
#include "stage1-kvm/vsock/packet.h"

#include "tests/support/fixture.h"

static const unsigned char wire[VSOCK_HEADER_SIZE] = {
	0x02, 0,    0,    0,    0,    0,    0,    0, /* src_cid */
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 1, /* dst_cid */
	0x00, 0x04, 0,    0,                         /* src_port */
	0x78, 0x56, 0x34, 0x12,                      /* dst_port */
	0xff, 0xff, 0xff, 0xff,                      /* len */
	0x01, 0x00,                                  /* type */
	0x05, 0x00,                                  /* op */
	0x03, 0,    0,    0,                         /* flags */
	0x00, 0x00, 0x04, 0x00,                      /* buf_alloc */
	0x01, 0x02, 0x03, 0x04,                      /* fwd_cnt */
};

static void test_decode(void **state)
{
	struct vsock_header h;
	(void)state;
	vsock_header_decode(wire, &h);
	assert_int_equal(h.src_cid, VSOCK_CID_HOST);
	assert_int_equal(h.dst_cid, UINT64_C(0x0102030405060708));
	assert_int_equal(h.src_port, 1024);
	assert_int_equal(h.dst_port, 0x12345678);
	assert_int_equal(h.len, UINT32_MAX);
	assert_int_equal(h.type, VSOCK_TYPE_STREAM);
	assert_int_equal(h.op, VSOCK_OP_RW);
	assert_int_equal(h.flags, VSOCK_SHUTDOWN_BOTH);
	assert_int_equal(h.buf_alloc, 256 << 10);
	assert_int_equal(h.fwd_cnt, 0x04030201);
}

static void test_encode_is_the_inverse(void **state)
{
	struct vsock_header h;
	unsigned char again[VSOCK_HEADER_SIZE];
	(void)state;
	vsock_header_decode(wire, &h);
	vsock_header_encode(&h, again);
	assert_memory_equal(wire, again, sizeof(wire));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_decode),
		fixture_test(test_encode_is_the_inverse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
