/*
 * Many small objects that are freed together, with a maximum on their sum.
 */
#ifndef HOST_RENDER_ARENA_H
#define HOST_RENDER_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *next;  /* free part of the newest chunk */
	size_t left; /* bytes free there */
	size_t used; /* bytes of all chunks */
	size_t max;
};

/* Prepares an empty arena of at most @max bytes. Allocates nothing. */
void arena_init(struct arena *a, size_t max);

/* Frees everything. Accepts NULL. */
void arena_deinit(struct arena *a);

/* @size zeroed bytes, aligned for any type. NULL if memory is short or the maximum is reached. */
void *arena_alloc(struct arena *a, size_t size);

/* A copy of @len bytes with a NUL behind it. NULL as above. */
char *arena_copy(struct arena *a, const void *data, size_t len);

#endif
