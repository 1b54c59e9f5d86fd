/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ttrpc/frame.h"

#include "lib/base/macros.h"

void ttrpc_reader_init(struct ttrpc_reader *r)
{
	buf_init(&r->in, TTRPC_FRAME_MAX);
	r->skip = 0;
}

void ttrpc_reader_deinit(struct ttrpc_reader *r)
{
	buf_deinit(&r->in);
}

static uint32_t read_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void write_u32(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n >> 24);
	p[1] = (uint8_t)(n >> 16);
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
}

static void read_header(const struct buf *in, struct ttrpc_header *ret)
{
	const uint8_t *p = (const uint8_t *)buf_data(in);
	*ret = (struct ttrpc_header){
		.len = read_u32(p),
		.stream = read_u32(p + 4),
		.type = p[8],
		.flags = p[9],
	};
}

int ttrpc_header_append(struct buf *out, const struct ttrpc_header *h)
{
	uint8_t bytes[TTRPC_HEADER_LEN];
	write_u32(bytes, h->len);
	write_u32(bytes + 4, h->stream);
	bytes[8] = h->type;
	bytes[9] = h->flags;
	return buf_append(out, bytes, sizeof(bytes));
}

/* Drops what has come of data that nobody wants. */
static void skip_data(struct ttrpc_reader *r)
{
	size_t n = (size_t)MIN(r->skip, (uint64_t)buf_len(&r->in));
	buf_consume(&r->in, n);
	r->skip -= n;
}

int ttrpc_reader_next(struct ttrpc_reader *r, struct ttrpc_header *ret, const uint8_t **ret_data)
{
	skip_data(r);
	if (r->skip > 0 || buf_len(&r->in) < TTRPC_HEADER_LEN)
		return TTRPC_INCOMPLETE;
	read_header(&r->in, ret);
	if (ret->len > TTRPC_DATA_MAX) {
		buf_consume(&r->in, TTRPC_HEADER_LEN);
		r->skip = ret->len;
		return TTRPC_TOO_LONG;
	}
	if (buf_len(&r->in) < TTRPC_HEADER_LEN + ret->len)
		return TTRPC_INCOMPLETE;
	*ret_data = (const uint8_t *)buf_data(&r->in) + TTRPC_HEADER_LEN;
	return 0;
}

void ttrpc_reader_drop(struct ttrpc_reader *r, size_t len)
{
	buf_consume(&r->in, TTRPC_HEADER_LEN + len);
}

size_t ttrpc_reader_missing(const struct ttrpc_reader *r)
{
	struct ttrpc_header h;
	size_t have = buf_len(&r->in);
	if (r->skip > have)
		return (size_t)MIN(r->skip - have, (uint64_t)TTRPC_DATA_MAX);
	if (have < TTRPC_HEADER_LEN)
		return TTRPC_HEADER_LEN - have;
	read_header(&r->in, &h);
	size_t whole = TTRPC_HEADER_LEN + MIN((size_t)h.len, TTRPC_DATA_MAX);
	return whole > have ? whole - have : 0;
}
