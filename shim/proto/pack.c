/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/proto/pack.h"

#include <stdlib.h>

#include "lib/base/macros.h"

#define NS_PER_SECOND INT64_C(1000000000)

char *proto_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

Task__Timestamp proto_timestamp(int64_t ns)
{
	Task__Timestamp t;
	task__timestamp__init(&t);
	t.seconds = ns / NS_PER_SECOND;
	t.nanos = (int32_t)(ns % NS_PER_SECOND);
	return t;
}

uint8_t *proto_pack(const ProtobufCMessage *m, size_t *ret_len)
{
	uint8_t *bytes = malloc(MAX(protobuf_c_message_get_packed_size(m), (size_t)1));
	if (bytes)
		*ret_len = protobuf_c_message_pack(m, bytes);
	return bytes;
}
