/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/packet.h"

#include <endian.h>
#include <string.h>

/* Offsets of the fields, in the order of the structure in the specification. */
enum {
	AT_SRC_CID = 0,
	AT_DST_CID = 8,
	AT_SRC_PORT = 16,
	AT_DST_PORT = 20,
	AT_LEN = 24,
	AT_TYPE = 28,
	AT_OP = 30,
	AT_FLAGS = 32,
	AT_BUF_ALLOC = 36,
	AT_FWD_CNT = 40,
};

_Static_assert(AT_FWD_CNT + sizeof(uint32_t) == VSOCK_HEADER_SIZE, "fields fill the header");

static uint16_t get16(const unsigned char *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint32_t packet_get32(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t packet_get64(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static void put16(unsigned char *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(unsigned char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put64(unsigned char *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

void vsock_header_decode(const unsigned char wire[VSOCK_HEADER_SIZE], struct vsock_header *ret)
{
	*ret = (struct vsock_header){
		.src_cid = packet_get64(wire + AT_SRC_CID),
		.dst_cid = packet_get64(wire + AT_DST_CID),
		.src_port = packet_get32(wire + AT_SRC_PORT),
		.dst_port = packet_get32(wire + AT_DST_PORT),
		.len = packet_get32(wire + AT_LEN),
		.type = get16(wire + AT_TYPE),
		.op = get16(wire + AT_OP),
		.flags = packet_get32(wire + AT_FLAGS),
		.buf_alloc = packet_get32(wire + AT_BUF_ALLOC),
		.fwd_cnt = packet_get32(wire + AT_FWD_CNT),
	};
}

void vsock_header_encode(const struct vsock_header *h, unsigned char wire[VSOCK_HEADER_SIZE])
{
	put64(wire + AT_SRC_CID, h->src_cid);
	put64(wire + AT_DST_CID, h->dst_cid);
	put32(wire + AT_SRC_PORT, h->src_port);
	put32(wire + AT_DST_PORT, h->dst_port);
	put32(wire + AT_LEN, h->len);
	put16(wire + AT_TYPE, h->type);
	put16(wire + AT_OP, h->op);
	put32(wire + AT_FLAGS, h->flags);
	put32(wire + AT_BUF_ALLOC, h->buf_alloc);
	put32(wire + AT_FWD_CNT, h->fwd_cnt);
}
