/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/span.h"

#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define CHUNK ((size_t)64 * 1024) /* bytes hashed at a time */

void span_deinit(struct span *s)
{
	if (s)
		fd_replace(&s->fd, -EBADF);
}

int span_read(const struct span *s, void *mem, size_t size, uint64_t offset)
{
	if (offset > s->size || size > s->size - offset)
		return -ENODATA;
	size_t got;
	int r = fd_read_at(s->fd, mem, size, s->offset + offset, &got);
	return r == 0 && got < size ? -ENODATA : r;
}

int span_hash(const struct span *s, struct hasher *h)
{
	unsigned char chunk[CHUNK];
	for (uint64_t at = 0; at < s->size;) {
		size_t len = (size_t)MIN(s->size - at, (uint64_t)sizeof(chunk));
		int r = span_read(s, chunk, len, at);
		if (r < 0)
			return r;
		hasher_update(h, chunk, len);
		at += len;
	}
	return 0;
}

int span_digest(const struct span *s, struct digest *ret)
{
	struct hasher h;
	hasher_init(&h);
	int r = span_hash(s, &h);
	if (r == 0)
		hasher_finish(&h, ret);
	return r;
}
