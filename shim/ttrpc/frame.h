/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing of ttrpc 1.1, which containerd speaks with shims: a header of ten bytes (length and
 * stream, both 32 bits big-endian, type, flags), then the data.
 *
 * Sans-IO: takes bytes from a buffer, gives bytes to a buffer.
 */
#ifndef SHIM_TTRPC_FRAME_H
#define SHIM_TTRPC_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define TTRPC_HEADER_LEN ((size_t)10)
#define TTRPC_DATA_MAX   ((size_t)4 << 20) /* of one frame, as the protocol says */
#define TTRPC_FRAME_MAX  (TTRPC_HEADER_LEN + TTRPC_DATA_MAX)

/* Types of frames. What is none of them belongs to later versions, and is to be ignored. */
enum {
	TTRPC_REQUEST = 1,
	TTRPC_RESPONSE = 2,
};

struct ttrpc_header {
	uint32_t len;    /* bytes of data behind it */
	uint32_t stream; /* odd: of a client's request, and of its response */
	uint8_t type;
	uint8_t flags;
};

/* Bytes that arrive, cut into frames. */
struct ttrpc_reader {
	struct buf in; /* whoever reads appends to it, as far as ttrpc_reader_missing() says */
	uint64_t skip; /* bytes of a frame that is too long, which are dropped when they come */
};

/* Nothing has arrived. */
void ttrpc_reader_init(struct ttrpc_reader *r);

/* Frees what has arrived; may be called more than once. */
void ttrpc_reader_deinit(struct ttrpc_reader *r);

/* TTRPC_INCOMPLETE: more bytes are needed. TTRPC_TOO_LONG: its data is dropped as it comes. */
enum {
	TTRPC_INCOMPLETE = 1,
	TTRPC_TOO_LONG,
};

/*
 * Looks at the first frame. 0 with its data (borrowed until the next call or append; the frame is
 * to be dropped by ttrpc_reader_drop()), TTRPC_TOO_LONG with its header, once, or TTRPC_INCOMPLETE.
 */
int ttrpc_reader_next(struct ttrpc_reader *r, struct ttrpc_header *ret, const uint8_t **ret_data);

/* Drops the frame that ttrpc_reader_next() has shown, which has @len bytes of data. */
void ttrpc_reader_drop(struct ttrpc_reader *r, size_t len);

/*
 * How many bytes the first frame lacks, or that are to be dropped: at least 1 if it is incomplete.
 */
size_t ttrpc_reader_missing(const struct ttrpc_reader *r);

/* Appends a frame's header; its data is the caller's to append. Errors as buf_append(). */
int ttrpc_header_append(struct buf *out, const struct ttrpc_header *h);

#endif
