/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/oci_tar.h"

#include <stdio.h>

#include "images/export/sink.h"

#define BLOB_PREFIX "blobs/sha256/"

void oci_tar_blob_name(const struct digest *d, char out[TAR_HEAD_NAME_MAX + 1])
{
	snprintf(out, TAR_HEAD_NAME_MAX + 1, BLOB_PREFIX "%s", d->hex);
}

int oci_tar_head(struct oci_tar *t, const char *name, uint64_t size, struct err *e)
{
	unsigned char head[TAR_HEAD_SIZE];
	int r = tar_head_fill(head, name, size);
	if (r < 0)
		return err_sys(e, r, "\"%s\"", name);
	r = sink_write_at(t->fd, t->end, head, sizeof(head), e);
	t->end += TAR_HEAD_SIZE + size;
	return r;
}

static int put_zeros(struct oci_tar *t, size_t len, struct err *e)
{
	static const char zeros[TAR_END_SIZE];
	int r = sink_write_at(t->fd, t->end, zeros, len, e);
	t->end += len;
	return r;
}

int oci_tar_pad(struct oci_tar *t, uint64_t size, struct err *e)
{
	return put_zeros(t, tar_head_padding(size), e);
}

int oci_tar_member(struct oci_tar *t, const char *name, const void *data, size_t len, struct err *e)
{
	uint64_t at = t->end + TAR_HEAD_SIZE;
	int r = oci_tar_head(t, name, len, e);
	if (r == 0)
		r = sink_write_at(t->fd, at, data, len, e);
	return r == 0 ? oci_tar_pad(t, len, e) : r;
}

int oci_tar_finish(struct oci_tar *t, const struct blob_ref *manifest, const char *type,
		   const char *name, struct err *e)
{
	static const char layout[] = DESCRIBE_OCI_LAYOUT;
	cleanup_buf struct buf text;
	buf_init(&text, DESCRIBE_MAX);
	int r = describe_oci_index(manifest, type, name, &text, e);
	if (r == 0)
		r = oci_tar_member(t, "index.json", buf_data(&text), buf_len(&text), e);
	if (r == 0)
		r = oci_tar_member(t, "oci-layout", layout, sizeof(layout) - 1, e);
	return r == 0 ? put_zeros(t, TAR_END_SIZE, e) : r;
}
