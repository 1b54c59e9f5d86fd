/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: twice ARENA_SPAN of addresses are reserved, without access, and the aligned
 * half is used. Memory is made writable from its beginning on, a step at a time, so that a limit on
 * the process's memory (RLIMIT_DATA) counts what is needed and no more. The first unit stays
 * unused: its reference is "none".
 */
#include "images/render/arena.h"

#include <string.h>
#include <sys/mman.h>

#include "lib/base/macros.h"

#define STEP ((size_t)256 * 1024) /* made writable at once */

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = MIN(max, ARENA_SPAN) };
}

/* Returns the addresses [from, to). */
static void unmap(char *from, const char *to)
{
	if (from < to)
		munmap(from, (size_t)(to - from));
}

void arena_deinit(struct arena *a)
{
	if (!a)
		return;
	if (a->base)
		unmap(a->base, a->base + ARENA_SPAN);
	arena_init(a, a->max);
}

static int reserve(struct arena *a)
{
	char *mem = mmap(NULL, 2 * ARENA_SPAN, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	char *base = mem + (ARENA_SPAN - ((uintptr_t)mem & (ARENA_SPAN - 1))) % ARENA_SPAN;
	unmap(mem, base);
	unmap(base + ARENA_SPAN, mem + 2 * ARENA_SPAN);
	a->base = base;
	a->used = ARENA_UNIT;
	return 0;
}

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Takes @size bytes, a multiple of the unit, from the end. */
static void *extend(struct arena *a, size_t size)
{
	if (!a->base && reserve(a) < 0)
		return NULL;
	if (a->used > a->max || size > a->max - a->used)
		return NULL;
	size_t end = a->used + size;
	if (end > a->ready) {
		size_t ready = MIN(round_up(end, STEP), ARENA_SPAN);
		if (mprotect(a->base + a->ready, ready - a->ready, PROT_READ | PROT_WRITE) < 0)
			return NULL;
		a->ready = ready;
	}
	void *p = a->base + a->used;
	a->used = end;
	return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > a->max)
		return NULL;
	size = round_up(size, ARENA_UNIT);
	uint32_t *list = size <= ARENA_REUSE_MAX ? &a->reuse[size / ARENA_UNIT] : NULL;
	if (!list || !*list)
		return extend(a, size);
	uint32_t *p = arena_at(a->base, *list);
	*list = *p; /* a freed object begins with the next one's reference */
	return memset(p, 0, size);
}

void arena_free(struct arena *a, void *p, size_t size)
{
	size = round_up(size, ARENA_UNIT);
	if (!p || size > ARENA_REUSE_MAX)
		return;
	uint32_t *list = &a->reuse[size / ARENA_UNIT];
	*(uint32_t *)p = *list;
	*list = arena_ref(p);
}
