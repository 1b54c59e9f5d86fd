/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BUF_ALLOC_MIN 256

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_deinit(struct buf *b)
{
	if (!b)
		return;
	free(b->mem);
	buf_init(b, b->max);
}

const char *buf_data(const struct buf *b)
{
	return b->mem ? b->mem + b->head : NULL;
}

size_t buf_len(const struct buf *b)
{
	return b->tail - b->head;
}

size_t buf_room(const struct buf *b)
{
	return b->max - buf_len(b);
}

/* Ensures that @len bytes (plus a NUL) fit behind the tail, moving or growing the storage. */
static int make_space(struct buf *b, size_t len)
{
	size_t used = buf_len(b);
	if (len > b->max - used)
		return -EMSGSIZE;
	if (b->alloc - b->tail > len)
		return 0;
	if (b->head > 0) {
		memmove(b->mem, b->mem + b->head, used);
		b->head = 0;
		b->tail = used;
		if (b->alloc - b->tail > len)
			return 0;
	}
	size_t want = MAX(b->alloc * 2, (size_t)BUF_ALLOC_MIN);
	want = MAX(MIN(want, b->max + 1), used + len + 1);
	char *mem = realloc(b->mem, want);
	if (!mem)
		return -ENOMEM;
	b->mem = mem;
	b->alloc = want;
	return 0;
}

int buf_reserve(struct buf *b, size_t len, char **ret_where)
{
	int r = make_space(b, len);
	if (r < 0)
		return r;
	*ret_where = b->mem + b->tail;
	return 0;
}

void buf_commit(struct buf *b, size_t len)
{
	assert(len <= b->alloc - b->tail);
	b->tail += len;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
	char *where;
	int r = buf_reserve(b, len, &where);
	if (r < 0)
		return r;
	if (len > 0)
		memcpy(where, data, len);
	buf_commit(b, len);
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	char *where;
	int r = buf_reserve(b, (size_t)n, &where);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	vsnprintf(where, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_commit(b, (size_t)n);
	return 0;
}

void buf_consume(struct buf *b, size_t len)
{
	assert(len <= buf_len(b));
	b->head += len;
	if (b->head == b->tail)
		b->head = b->tail = 0;
}

char *buf_take_string(struct buf *b)
{
	if (make_space(b, 0) < 0)
		return NULL;
	size_t used = buf_len(b);
	memmove(b->mem, b->mem + b->head, used);
	b->mem[used] = '\0';
	char *s = TAKE_PTR(b->mem);
	buf_init(b, b->max);
	return s;
}
