/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many small objects in one range of addresses, named by 32 bits, with a maximum on their sum.
 *
 * The range is aligned to its size, so that the address of any object tells where it begins, and a
 * reference (the distance from there in units of four bytes; 0 is none) becomes an address without
 * anything else. Objects are aligned to four bytes. Freed ones are used again for objects of the
 * same size.
 */
#ifndef IMAGES_RENDER_ARENA_H
#define IMAGES_RENDER_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define ARENA_SPAN      ((size_t)64 * 1024 * 1024) /* addresses; the most that a maximum can be */
#define ARENA_UNIT      ((size_t)4)
#define ARENA_REUSE_MAX ((size_t)4352) /* larger ones stay lost: a link's target, a name are less */

struct arena {
	char *base;   /* NULL until the first object */
	size_t used;  /* bytes given out, from @base */
	size_t ready; /* bytes that may be written, from @base */
	size_t max;
	uint32_t reuse[ARENA_REUSE_MAX / ARENA_UNIT + 1]; /* lists of freed objects, by size */
};

/* Prepares an empty arena of at most @max bytes, at most ARENA_SPAN. Takes no memory. */
void arena_init(struct arena *a, size_t max);

/* Frees everything. Accepts NULL. */
void arena_deinit(struct arena *a);

/* @size zeroed bytes, at least one. NULL if memory is short or the maximum is reached. */
void *arena_alloc(struct arena *a, size_t size);

/* Gives back @p (or NULL), which was allocated with @size. */
void arena_free(struct arena *a, void *p, size_t size);

/* The reference of the object @p. */
static inline uint32_t arena_ref(const void *p)
{
	return (uint32_t)(((uintptr_t)p & (ARENA_SPAN - 1)) / ARENA_UNIT);
}

/* The object @ref, which is not 0, of the arena that @any is in. */
static inline void *arena_get(const void *any, uint32_t ref)
{
	return (char *)((uintptr_t)any & ~(uintptr_t)(ARENA_SPAN - 1)) + ref * ARENA_UNIT;
}

/* The same, and NULL for 0. */
static inline void *arena_at(const void *any, uint32_t ref)
{
	return ref ? arena_get(any, ref) : NULL;
}

#endif
