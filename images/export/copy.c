/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "images/export/describe.h"
#include "images/export/oci_tar.h"
#include "images/export/sink.h"
#include "images/store/layout.h"
#include "lib/os/fd.h"

#define CHUNK ((size_t)256 * 1024) /* bytes in memory */

/*
 * The descriptor of the blob ends where the blob should go on, or it goes on where it should end.
 */
static int damaged(const struct blob_file *b, struct err *e)
{
	return err_set(e, -EBADMSG, "blob sha256:%.12s... is damaged (fetch the image again)",
		       b->digest.hex);
}

/* Copies the content to @at of the archive, and checks it. */
static int copy_content(const struct blob_file *b, int out, uint64_t at, char *mem, struct err *e)
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

static int copy_member(const struct blob_file *b, struct oci_tar *tar, char *mem, struct err *e)
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
		r = copy_member(&job->blobs[i], &tar, mem, e);
	const struct blob_ref manifest = { job->blobs[0].digest, job->blobs[0].size };
	return r == 0 ? oci_tar_finish(&tar, &manifest, job->type, job->name, e) : r;
}

int copy_blob(const struct blob_file *blob, int out, struct err *e)
{
	cleanup_free char *mem = malloc(CHUNK);
	return mem ? copy_content(blob, out, 0, mem, e) : err_set(e, -ENOMEM, "out of memory");
}

static int copy_blobs(const struct image *image, const struct blob_file *blobs, size_t n, int out,
		      struct err *e)
{
	const struct copy_job job = {
		.blobs = blobs,
		.n = n,
		.type = image->manifest_type,
		.name = image->name,
		.out = out,
	};
	return copy_image(&job, e);
}

int copy_open_image(const struct image *image, int out, struct err *e)
{
	struct blob_file *blobs = NULL;
	size_t n = 0;
	int r = image_open_blobs(image, &blobs, &n, e);
	/* Of an appc image the archive that it came as: its one layer, the last of its blobs. */
	if (r == 0)
		r = image->is_appc ? copy_blob(&blobs[n - 1], out, e)
				   : copy_blobs(image, blobs, n, out, e);
	layout_blobs_free(blobs, n);
	return r;
}
