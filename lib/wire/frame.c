/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/frame.h"

#include <errno.h>
#include <stdint.h>

int frame_append(struct buf *out, const void *payload, size_t len)
{
	if (len == 0 || len > FRAME_PAYLOAD_MAX)
		return -EMSGSIZE;
	char *where;
	int r = buf_reserve(out, FRAME_HEADER_LEN + len, &where);
	if (r < 0)
		return r;
	const unsigned char header[FRAME_HEADER_LEN] = {
		(unsigned char)(len >> 24),
		(unsigned char)(len >> 16),
		(unsigned char)(len >> 8),
		(unsigned char)len,
	};
	r = buf_append(out, header, sizeof(header));
	return r < 0 ? r : buf_append(out, payload, len);
}

static size_t frame_announced(const struct buf *in)
{
	const unsigned char *p = (const unsigned char *)buf_data(in);
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

size_t frame_missing(const struct buf *in)
{
	size_t have = buf_len(in);
	if (have < FRAME_HEADER_LEN)
		return FRAME_HEADER_LEN - have;
	size_t whole = FRAME_HEADER_LEN + frame_announced(in);
	return whole > have ? whole - have : 0;
}

int frame_peek(const struct buf *in, const char **ret_payload, size_t *ret_len)
{
	if (buf_len(in) < FRAME_HEADER_LEN)
		return FRAME_INCOMPLETE;
	size_t len = frame_announced(in);
	if (len == 0 || len > FRAME_PAYLOAD_MAX)
		return -EBADMSG;
	if (buf_len(in) - FRAME_HEADER_LEN < len)
		return FRAME_INCOMPLETE;
	*ret_payload = buf_data(in) + FRAME_HEADER_LEN;
	*ret_len = len;
	return 0;
}

void frame_consume(struct buf *in, size_t len)
{
	buf_consume(in, FRAME_HEADER_LEN + len);
}
