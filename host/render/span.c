/* SPDX-License-Identifier: Apache-2.0 */
#include "host/render/span.h"

#include <unistd.h>

#include "lib/os/fd.h"

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
