/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "images/render/squash_int.h"

int squash_fail(const struct squash *s, int code, struct err *e)
{
	if (s->file.error == -ENOSPC || s->file.error == -EDQUOT)
		return err_set(e, s->file.error,
			       "no space left in %s (free some space or use --dir)", s->where);
	if (s->file.error)
		return err_sys(e, s->file.error, "writing the file system image");
	if (code == SQFS_ERROR_ALLOC)
		return err_set(e, -ENOMEM,
			       "out of memory (the image has very many files, owners or "
			       "attributes; make it of fewer)");
	return err_set(e, -EIO, "the squashfs library failed with code %d", code);
}
