/* SPDX-License-Identifier: Apache-2.0 */
#include "host/export/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/export/archive.h"
#include "host/export/describe.h"
#include "host/export/oci_tar.h"
#include "host/export/sink.h"
#include "host/render/confine.h"
#include "host/render/stream.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"

#define CHUNK ((size_t)256 * 1024) /* bytes in memory */

/*
 * The descriptor of the blob ends where the blob should go on, or it goes on where it should end.
 */
static int damaged(const struct copy_blob *b, struct err *e)
{
	return err_set(e, -EBADMSG, "blob sha256:%.12s... is damaged (fetch the image again)",
		       b->digest.hex);
}

/* Copies the content to @at of the archive, and checks it. */
static int copy_content(const struct copy_blob *b, int out, uint64_t at, char *mem, struct err *e)
{
	struct hasher hasher;
	struct digest got;
	hasher_init(&hasher);
	for (uint64_t done = 0; done < b->size;) {
		size_t len = (size_t)MIN(b->size - done, (uint64_t)CHUNK), n;
		int r = fd_read_at(b->fd, mem, len, done, &n);
		if (r < 0)
			return err_sys(e, r, "cannot read blob sha256:%.12s...", b->digest.hex);
		if (n < len)
			return damaged(b, e);
		hasher_update(&hasher, mem, len);
		r = sink_write_at(out, at + done, mem, len, e);
		if (r < 0)
			return r;
		done += len;
	}
	hasher_finish(&hasher, &got);
	return digest_equal(&got, &b->digest) ? 0 : damaged(b, e);
}

static int copy_blob(const struct copy_blob *b, struct oci_tar *tar, char *mem, struct err *e)
{
	char name[TAR_HEAD_NAME_MAX + 1];
	uint64_t at = tar->end + TAR_HEAD_SIZE;
	oci_tar_blob_name(&b->digest, name);
	int r = oci_tar_head(tar, name, b->size, e);
	if (r == 0)
		r = copy_content(b, tar->fd, at, mem, e);
	return r == 0 ? oci_tar_pad(tar, b->size, e) : r;
}

int copy_image(const struct copy_job *job, struct err *e)
{
	struct oci_tar tar = { .fd = job->out };
	cleanup_free char *mem = malloc(CHUNK);
	if (!mem)
		return err_set(e, -ENOMEM, "out of memory");
	int r = 0;
	for (size_t i = 0; r == 0 && i < job->n; i++)
		r = copy_blob(&job->blobs[i], &tar, mem, e);
	const struct blob_ref manifest = { job->blobs[0].digest, job->blobs[0].size };
	return r == 0 ? oci_tar_finish(&tar, &manifest, job->type, job->name, e) : r;
}

struct decompression {
	const struct copy_blob *blob;
	int out;
};

static int decompress_child(void *ctx, struct buf *result, struct err *e)
{
	const struct decompression *d = ctx;
	const struct span span = { .fd = d->blob->fd, .size = d->blob->size };
	CLEANUP(stream_freep) struct stream *s = NULL;
	struct digest got;
	const void *data;
	size_t len;
	uint64_t end = 0;
	(void)result;
	int r = stream_new(&span, true, ARCHIVE_BYTES_MAX, &s, e);
	while (r == 0) {
		r = stream_next(s, &data, &len, e);
		if (r != 0)
			break;
		r = sink_write_at(d->out, end, data, len, e);
		end += len;
	}
	if (r != STREAM_END)
		return r;
	r = stream_blob_digest(s, &got, e);
	if (r < 0)
		return r;
	return digest_equal(&got, &d->blob->digest) ? 0 : damaged(d->blob, e);
}

int copy_decompressed(const struct copy_blob *blob, int out, struct err *e)
{
	const int fds[] = { blob->fd, out };
	struct decompression d = { blob, out };
	cleanup_buf struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	return confine_run("exporting", decompress_child, &d, fds, ARRAY_SIZE(fds), &result, e);
}
