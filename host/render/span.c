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
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(s->fd, (char *)mem + done, size - done,
				  (off_t)(s->offset + offset + done));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}
