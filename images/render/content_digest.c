/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/render.h"
#include "images/render/squash.h"

int render_content_digest(int fd, struct digest *ret, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "the rendered image cannot be read");
	uint64_t size = (uint64_t)st.st_size;
	if (size < SQUASH_SUPER_SIZE)
		return err_set(e, -EBADMSG, "the rendered image is damaged: it is too short");
	const struct span super = { .fd = fd, .size = SQUASH_SUPER_SIZE };
	const struct span rest = { fd, SQUASH_SUPER_SIZE, size - SQUASH_SUPER_SIZE };
	struct hasher h;
	hasher_init(&h);
	int r = span_hash(&rest, &h);
	if (r == 0)
		r = span_hash(&super, &h);
	if (r < 0)
		return err_sys(e, r, "the rendered image cannot be read");
	hasher_finish(&h, ret);
	return 0;
}
