#include "host/render/arena.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

#define CHUNK_SIZE ((size_t)256 * 1024)

struct arena_chunk {
	struct arena_chunk *older;
	_Alignas(max_align_t) char mem[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = max };
}

void arena_deinit(struct arena *a)
{
	if (!a)
		return;
	for (struct arena_chunk *c = a->chunks, *older; c; c = older) {
		older = c->older;
		free(c);
	}
	arena_init(a, a->max);
}

/* Starts a chunk with room for @size bytes. */
static int grow(struct arena *a, size_t size)
{
	size_t room = MAX(size, CHUNK_SIZE - sizeof(struct arena_chunk));
	if (room > a->max - a->used)
		room = size;
	if (room > a->max - a->used)
		return -ENOMEM;
	struct arena_chunk *c = calloc(1, sizeof(*c) + room);
	if (!c)
		return -ENOMEM;
	c->older = a->chunks;
	a->chunks = c;
	a->next = c->mem;
	a->left = room;
	a->used += room;
	return 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t unit = _Alignof(max_align_t);
	if (size > a->max)
		return NULL;
	size = (size + unit - 1) / unit * unit;
	if (size > a->left && grow(a, size) < 0)
		return NULL;
	void *p = a->next;
	a->next += size;
	a->left -= size;
	return p;
}

char *arena_copy(struct arena *a, const void *data, size_t len)
{
	if (len >= a->max)
		return NULL;
	char *p = arena_alloc(a, len + 1);
	if (p && len > 0)
		memcpy(p, data, len);
	return p;
}
