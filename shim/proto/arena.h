/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for messages of protobuf-c that others wrote: a member of a few bytes becomes a structure,
 * so that a message has to be limited by what it takes in memory, not only by its length.
 */
#ifndef SHIM_PROTO_ARENA_H
#define SHIM_PROTO_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Of one message and all in it: four times what the longest has that is bytes and texts. */
#define PROTO_MEMORY_MAX ((size_t)16 << 20)

struct proto_arena {
	ProtobufCAllocator allocator; /* for NAME__unpack() and NAME__free_unpacked() */
	size_t left;
};

/* From which PROTO_MEMORY_MAX bytes can be had, once: what is freed does not come back. */
void proto_arena_init(struct proto_arena *a);

#endif
