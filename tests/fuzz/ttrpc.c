/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What containerd sends, as the shim takes it: bytes in pieces, frames cut out of them, requests,
 * and the messages that they may be. The first byte sets the size of the pieces. Properties:
 * nothing depends on how the bytes were cut; what is missing is never more than a frame; a request
 * that is taken can be sent, and is the same then.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/proto/task.pb-c.h"
#include "shim/ttrpc/frame.h"
#include "shim/ttrpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

/* For each message that is read of others: read and freed. */
#define TRY(name, q)                                                                      \
	do {                                                                              \
		struct proto_arena arena;                                                 \
		proto_arena_init(&arena);                                                 \
		task__##name##__free_unpacked(                                            \
			task__##name##__unpack(&arena.allocator, (q)->len, (q)->payload), \
			&arena.allocator);                                                \
	} while (0)

static void try_request(const uint8_t *data, size_t len)
{
	struct ttrpc_request q, back;
	cleanup_buf struct buf out;
	buf_init(&out, TTRPC_FRAME_MAX);
	if (ttrpc_request_decode(data, len, &q) == 0) {
		TRY(create_request, &q);
		TRY(process_request, &q);
		TRY(kill_request, &q);
		TRY(options, &q);
		check(ttrpc_request_append(&out, 1, q.service, q.method, q.payload, q.len) == 0);
		check(ttrpc_request_decode((const uint8_t *)buf_data(&out) + TTRPC_HEADER_LEN,
					   buf_len(&out) - TTRPC_HEADER_LEN, &back) == 0);
		check(strcmp(q.service, back.service) == 0 && strcmp(q.method, back.method) == 0);
		check(q.len == back.len &&
		      (q.len == 0 || memcmp(q.payload, back.payload, q.len) == 0));
		ttrpc_request_deinit(&back);
	}
	ttrpc_request_deinit(&q);
}

static void try_response(const uint8_t *data, size_t len)
{
	char why[TTRPC_ERROR_MAX + 1];
	int code;
	if (ttrpc_response_decode(data, len, &code, why) == 0)
		check(strlen(why) <= TTRPC_ERROR_MAX);
}

/* Takes all frames that are there. A sum of what they were. */
static uint64_t take(struct ttrpc_reader *r, uint64_t sum)
{
	struct ttrpc_header h;
	const uint8_t *data;
	int result;
	while ((result = ttrpc_reader_next(r, &h, &data)) != TTRPC_INCOMPLETE) {
		sum = sum * 31 + h.len + h.stream + h.type + h.flags;
		if (result != 0)
			continue;
		for (uint32_t i = 0; i < h.len; i++)
			sum = sum * 31 + data[i];
		try_request(data, h.len);
		try_response(data, h.len);
		ttrpc_reader_drop(r, h.len);
	}
	check(ttrpc_reader_missing(r) > 0 && ttrpc_reader_missing(r) <= TTRPC_FRAME_MAX);
	return sum;
}

static uint64_t take_pieces(const uint8_t *data, size_t size, size_t piece)
{
	struct ttrpc_reader r;
	uint64_t sum = 0;
	ttrpc_reader_init(&r);
	for (size_t at = 0; at < size; at += piece) {
		check(buf_append(&r.in, data + at, MIN(piece, size - at)) == 0);
		sum = take(&r, sum);
	}
	ttrpc_reader_deinit(&r);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	check(take_pieces(data + 1, size - 1, (size_t)data[0] + 1) ==
	      take_pieces(data + 1, size - 1, size - 1));
	return 0;
}
