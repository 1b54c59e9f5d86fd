/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/proto/arena.h"

#include <stdlib.h>

static void *arena_alloc(void *ctx, size_t size)
{
	struct proto_arena *a = ctx;
	if (size > a->left)
		return NULL;
	void *mem = malloc(size);
	if (mem)
		a->left -= size;
	return mem;
}

static void arena_free(void *ctx, void *mem)
{
	(void)ctx;
	free(mem);
}

void proto_arena_init(struct proto_arena *a)
{
	a->allocator = (ProtobufCAllocator){ arena_alloc, arena_free, a };
	a->left = PROTO_MEMORY_MAX;
}
