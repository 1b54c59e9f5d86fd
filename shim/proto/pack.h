/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf-c that we write. */
#ifndef SHIM_PROTO_PACK_H
#define SHIM_PROTO_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "shim/proto/task.pb-c.h"

/* @text as a member of a message that is to be packed, which protobuf-c does not write into. */
char *proto_text(const char *text);

/* A point in time, in nanoseconds of CLOCK_REALTIME, as the protocol has it. */
Task__Timestamp proto_timestamp(int64_t ns);

/* The *ret_len bytes of @m, the caller's to free; NULL if there is no memory. */
uint8_t *proto_pack(const ProtobufCMessage *m, size_t *ret_len);

#endif
