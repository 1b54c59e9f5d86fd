/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ttrpc/message.h"

#include <errno.h>

#include "lib/base/str.h"
#include "shim/proto/pack.h"
#include "shim/proto/ttrpc.pb-c.h"
#include "shim/ttrpc/frame.h"

int ttrpc_request_decode(const uint8_t *data, size_t len, struct ttrpc_request *ret)
{
	*ret = (struct ttrpc_request){ .message = NULL };
	proto_arena_init(&ret->arena);
	Ttrpc__Request *m = ttrpc__request__unpack(&ret->arena.allocator, len, data);
	if (!m)
		return -EBADMSG;
	ret->message = m;
	ret->service = m->service;
	ret->method = m->method;
	ret->payload = m->payload.data;
	ret->len = m->payload.len;
	return 0;
}

void ttrpc_request_deinit(struct ttrpc_request *q)
{
	if (q->message)
		ttrpc__request__free_unpacked(q->message, &q->arena.allocator);
	q->message = NULL;
}

/* Appends the frame of a message. */
static int append_message(struct buf *out, uint32_t stream, uint8_t type, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	if (len > TTRPC_DATA_MAX || TTRPC_HEADER_LEN + len > buf_room(out))
		return -EMSGSIZE;
	const struct ttrpc_header h = { .len = (uint32_t)len, .stream = stream, .type = type };
	char *where;
	int r = buf_reserve(out, TTRPC_HEADER_LEN + len, &where);
	if (r < 0)
		return r;
	r = ttrpc_header_append(out, &h);
	if (r == 0 && len > 0)
		r = buf_reserve(out, len, &where);
	if (r < 0)
		return r;
	if (len > 0)
		buf_commit(out, protobuf_c_message_pack(m, (uint8_t *)where));
	return 0;
}

/* protobuf-c does not write into what it packs. */
static ProtobufCBinaryData bytes_of(const uint8_t *data, size_t len)
{
	return (ProtobufCBinaryData){ .len = len, .data = (uint8_t *)(uintptr_t)data };
}

int ttrpc_request_append(struct buf *out, uint32_t stream, const char *service, const char *method,
			 const uint8_t *payload, size_t len)
{
	Ttrpc__Request m;
	ttrpc__request__init(&m);
	m.service = proto_text(service);
	m.method = proto_text(method);
	m.payload = bytes_of(payload, len);
	return append_message(out, stream, TTRPC_REQUEST, &m.base);
}

int ttrpc_response_append(struct buf *out, uint32_t stream, enum ttrpc_code code, const char *why,
			  const uint8_t *payload, size_t len)
{
	char text[TTRPC_ERROR_MAX + 1];
	Ttrpc__Status status;
	Ttrpc__Response m;
	ttrpc__status__init(&status);
	ttrpc__response__init(&m);
	if (code == TTRPC_OK) {
		m.payload = bytes_of(payload, len);
	} else {
		str_copy_text(text, sizeof(text), why);
		status.code = code;
		status.message = text;
		m.status = &status;
	}
	return append_message(out, stream, TTRPC_RESPONSE, &m.base);
}

int ttrpc_response_decode(const uint8_t *data, size_t len, int *ret_code,
			  char why[TTRPC_ERROR_MAX + 1])
{
	struct proto_arena arena;
	proto_arena_init(&arena);
	Ttrpc__Response *m = ttrpc__response__unpack(&arena.allocator, len, data);
	if (!m)
		return -EBADMSG;
	*ret_code = m->status ? m->status->code : TTRPC_OK;
	str_copy_text(why, TTRPC_ERROR_MAX + 1, m->status ? m->status->message : "");
	ttrpc__response__free_unpacked(m, &arena.allocator);
	return 0;
}
