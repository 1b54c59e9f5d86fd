/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the frames of ttrpc: requests, and responses to them. Sans-IO. */
#ifndef SHIM_TTRPC_MESSAGE_H
#define SHIM_TTRPC_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "shim/proto/arena.h"

/* Codes of gRPC, of which containerd tells these apart. */
enum ttrpc_code {
	TTRPC_OK = 0,
	TTRPC_UNKNOWN = 2,
	TTRPC_INVALID_ARGUMENT = 3,
	TTRPC_NOT_FOUND = 5,
	TTRPC_ALREADY_EXISTS = 6,
	TTRPC_RESOURCE_EXHAUSTED = 8,
	TTRPC_FAILED_PRECONDITION = 9,
	TTRPC_UNIMPLEMENTED = 12,
	TTRPC_UNAVAILABLE = 14,
};

#define TTRPC_ERROR_MAX ((size_t)4096) /* bytes of an error's text; what is longer is cut */

/* A request that has come. All is borrowed from @message. */
struct ttrpc_request {
	const char *service, *method;
	const uint8_t *payload;
	size_t len;
	struct proto_arena arena;
	void *message; /* owned */
};

/* Reads a request's data. 0 (to be deinitialised), or -EBADMSG. */
int ttrpc_request_decode(const uint8_t *data, size_t len, struct ttrpc_request *ret);
void ttrpc_request_deinit(struct ttrpc_request *q);

/* Appends the frame of a request. -EMSGSIZE if it is too long or does not fit @out; -ENOMEM. */
int ttrpc_request_append(struct buf *out, uint32_t stream, const char *service, const char *method,
			 const uint8_t *payload, size_t len);

/*
 * Appends the frame of a response: with TTRPC_OK its payload, which is @len bytes, else an error
 * with the text @why. Errors as above.
 */
int ttrpc_response_append(struct buf *out, uint32_t stream, enum ttrpc_code code, const char *why,
			  const uint8_t *payload, size_t len);

/* What a response says: *ret_code and, of an error, its text. 0, or -EBADMSG. */
int ttrpc_response_decode(const uint8_t *data, size_t len, int *ret_code,
			  char why[TTRPC_ERROR_MAX + 1]);

#endif
