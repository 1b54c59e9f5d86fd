/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer that cannot exist without a maximum.
 *
 * Bytes are appended at the end and consumed from the front. The storage grows by doubling up to
 * the maximum given at initialisation and moves only when an append needs room, so a pointer from
 * buf_data() is valid until the next append. A failed append leaves the buffer as it was.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/macros.h"

struct buf {
	char *mem;    /* owned; NULL until the first append */
	size_t head;  /* offset of the first unconsumed byte */
	size_t tail;  /* offset behind the last byte */
	size_t alloc; /* bytes allocated */
	size_t max;   /* most unconsumed bytes ever held */
};

/* Prepares an empty buffer that never holds more than @max bytes. Allocates nothing. */
void buf_init(struct buf *b, size_t max);

/* Frees the storage; @b is empty and usable again. Accepts NULL. */
void buf_deinit(struct buf *b);

#define cleanup_buf CLEANUP(buf_deinit)

/* The unconsumed bytes; valid until the next append. Not NUL-terminated. May be NULL if empty. */
const char *buf_data(const struct buf *b);

/* How many bytes are unconsumed, and how many more fit below the maximum. */
size_t buf_len(const struct buf *b);
size_t buf_room(const struct buf *b);

/* Appends @len bytes. -EMSGSIZE if they do not fit below the maximum, -ENOMEM. */
int buf_append(struct buf *b, const void *data, size_t len);

/* Appends a NUL-terminated string without its NUL. Errors as buf_append(). */
int buf_puts(struct buf *b, const char *s);

/* Appends formatted text. Errors as buf_append(). */
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_FORMAT(2, 3);

/*
 * Makes room for @len bytes and yields where to write them (*ret_where). buf_commit() then adds
 * what was written. Errors as buf_append().
 */
int buf_reserve(struct buf *b, size_t len, char **ret_where);
void buf_commit(struct buf *b, size_t len);

/* Drops @len bytes from the front; @len is at most buf_len(). */
void buf_consume(struct buf *b, size_t len);

/*
 * NUL-terminates the content (the NUL is not counted) and hands the storage to the caller, who
 * frees it; @b is empty afterwards. NULL if memory is short.
 */
char *buf_take_string(struct buf *b);

#endif
