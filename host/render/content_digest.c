/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "host/render/render.h"
#include "host/render/squash.h"

#define CHUNK ((size_t)64 * 1024)

/* Adds @len bytes at @at of @span to the hash. 0 or -errno. */
static int add_bytes(const struct span *span, uint64_t at, uint64_t len, struct hasher *h)
{
	unsigned char chunk[CHUNK];
	while (len > 0) {
		size_t n = (size_t)MIN(len, (uint64_t)sizeof(chunk));
		int r = span_read(span, chunk, n, at);
		if (r < 0)
			return r;
		hasher_update(h, chunk, n);
		at += n;
		len -= n;
	}
	return 0;
}

int render_content_digest(int fd, struct digest *ret, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "the rendered image cannot be read");
	struct span span = { .fd = fd, .size = (uint64_t)st.st_size };
	if (span.size < SQUASH_SUPER_SIZE)
		return err_set(e, -EBADMSG, "the rendered image is damaged: it is too short");
	struct hasher h;
	hasher_init(&h);
	int r = add_bytes(&span, SQUASH_SUPER_SIZE, span.size - SQUASH_SUPER_SIZE, &h);
	if (r == 0)
		r = add_bytes(&span, 0, SQUASH_SUPER_SIZE, &h);
	if (r < 0)
		return err_sys(e, r, "the rendered image cannot be read");
	hasher_finish(&h, ret);
	return 0;
}
