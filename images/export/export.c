/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: both file systems, or the image's alone, become trees of names (no
 * contents), the trees are merged, and the archive writer walks the result, asking the reader that
 * an inode came from for its content.
 *
 * An OCI archive is a tar of blobs that are named by their digests. The layer comes first: its
 * header is left free, the layer is written behind it, then the header. So nothing is written
 * twice.
 */
#include "images/export/export.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/export/archive.h"
#include "images/export/describe.h"
#include "images/export/ext4.h"
#include "images/export/image.h"
#include "images/export/oci_tar.h"
#include "images/export/overlay.h"
#include "images/export/sink.h"
#include "images/export/upper.h"
#include "images/render/confine.h"
#include "lib/base/macros.h"
#include "lib/os/userns.h"

struct export
{
	const struct export_job *job;
	struct image_fs *image;
	struct ext4 *disk;
	struct upper *upper;
	struct tree *tree;           /* the image's, later merged */
	struct ext4_changes changes; /* the app's, later empty */
	struct content_reader readers[CONTENT_COUNT_];
	struct oci_tar tar; /* of an OCI archive */
	struct err *e;
};

static void export_deinit(struct export *x)
{
	tree_free(x->tree);
	tree_free(x->changes.tree);
	ext4_free(x->disk);
	upper_free(x->upper);
	image_fs_free(x->image);
}

static int read_disk(struct export *x, struct export_report *ret)
{
	int r = ext4_open(x->job->disk, &x->disk, x->e);
	if (r == 0)
		r = ext4_tree(x->disk, x->job->app->name, &x->changes, x->e);
	if (r < 0)
		return r;
	ret->lost = x->changes.lost;
	ret->unclean = !ext4_is_clean(x->disk);
	x->readers[CONTENT_DISK] = ext4_reader(x->disk);
	return 0;
}

static int read_upper(struct export *x)
{
	int r = upper_open(x->job->upper, &x->upper, x->e);
	if (r == 0)
		r = upper_tree(x->upper, &x->changes.tree, x->e);
	if (r == 0)
		x->readers[CONTENT_DISK] = upper_reader(x->upper);
	return r;
}

/* Reads the app's changes, and merges them into the image's tree. */
static int merge_changes(struct export *x, struct export_report *ret)
{
	const struct export_job *job = x->job;
	if (job->disk < 0 && job->upper < 0)
		return 0;
	int r = job->disk >= 0 ? read_disk(x, ret) : read_upper(x);
	return r < 0 ? r
		     : overlay_merge(x->tree, x->changes.tree,
				     job->marks_are_user ? OVERLAY_USER : OVERLAY_TRUSTED, x->e);
}

static int read_layers(struct export *x, struct export_report *ret)
{
	int r = image_fs_open(x->job->image, &x->image, x->e);
	if (r == 0)
		r = image_fs_tree(x->image, &x->tree, x->e);
	if (r < 0)
		return r;
	x->readers[CONTENT_IMAGE] = image_fs_reader(x->image);
	return merge_changes(x, ret);
}

/* Packs the tree, behind @manifest if that is not NULL, at @offset. */
static int export_pack(struct export *x, uint64_t offset, const struct buf *manifest,
		       const char *prefix, struct sink_sums *ret)
{
	CLEANUP(sink_freep) struct sink *sink = NULL;
	CLEANUP(archive_out_freep) struct archive_out *a = NULL;
	int r = sink_new(x->job->out, offset, x->job->format != EXPORT_ACI_PLAIN, &sink, x->e);
	if (r == 0)
		r = archive_out_new(sink, &a, x->e);
	if (r == 0 && manifest)
		r = archive_out_file(a, "manifest", buf_data(manifest), buf_len(manifest), x->e);
	if (r == 0)
		r = archive_out_tree(a, x->tree, prefix, x->readers, x->e);
	if (r == 0)
		r = archive_out_finish(a, x->e);
	return r == 0 ? sink_finish(sink, ret, x->e) : r;
}

static int export_aci(struct export *x)
{
	cleanup_buf struct buf manifest;
	struct sink_sums sums;
	buf_init(&manifest, DESCRIBE_MAX);
	int r = describe_aci(x->job->app, &manifest, x->e);
	return r == 0 ? export_pack(x, 0, &manifest, "rootfs/", &sums) : r;
}

/* Writes the document @text, which is empty then, as a blob. */
static int put_blob(struct export *x, struct buf *text, struct blob_ref *ret)
{
	char name[TAR_HEAD_NAME_MAX + 1];
	digest_of(buf_data(text), buf_len(text), &ret->digest);
	ret->size = buf_len(text);
	oci_tar_blob_name(&ret->digest, name);
	int r = oci_tar_member(&x->tar, name, buf_data(text), buf_len(text), x->e);
	buf_consume(text, buf_len(text));
	return r;
}

/* The layer, as the first member of the archive. */
static int put_layer(struct export *x, struct digest *ret_diff_id, struct blob_ref *ret)
{
	struct sink_sums sums = { 0 };
	char name[TAR_HEAD_NAME_MAX + 1];
	int r = export_pack(x, TAR_HEAD_SIZE, NULL, "", &sums);
	if (r < 0)
		return r;
	*ret_diff_id = sums.plain;
	*ret = (struct blob_ref){ sums.stored, sums.stored_size };
	oci_tar_blob_name(&sums.stored, name);
	r = oci_tar_head(&x->tar, name, sums.stored_size, x->e);
	return r == 0 ? oci_tar_pad(&x->tar, sums.stored_size, x->e) : r;
}

static int export_oci(struct export *x)
{
	cleanup_buf struct buf text;
	struct digest diff_id;
	struct blob_ref layer, config, manifest;
	buf_init(&text, DESCRIBE_MAX);
	int r = put_layer(x, &diff_id, &layer);
	if (r == 0)
		r = describe_oci_config(x->job->app, &diff_id, &text, x->e);
	if (r == 0)
		r = put_blob(x, &text, &config);
	if (r == 0)
		r = describe_oci_manifest(&config, &layer, &text, x->e);
	if (r == 0)
		r = put_blob(x, &text, &manifest);
	return r == 0 ? oci_tar_finish(&x->tar, &manifest, NULL, x->job->app->name, x->e) : r;
}

int export_here(const struct export_job *job, struct export_report *ret, struct err *e)
{
	CLEANUP(export_deinit) struct export x = { .job = job, .tar = { .fd = job->out }, .e = e };
	struct export_report report = { 0 };
	int r = read_layers(&x, &report);
	if (r == 0)
		r = job->format == EXPORT_OCI ? export_oci(&x) : export_aci(&x);
	if (r == 0)
		*ret = report;
	return r;
}

static int export_child(void *ctx, struct buf *result, struct err *e)
{
	struct export_report report;
	int r = export_here(ctx, &report, e);
	return r == 0 ? buf_append(result, &report, sizeof(report)) : r;
}

static int run_confined(const struct export_job *job, struct export_report *ret, struct err *e)
{
	static const char what[] = "exporting";
	const int fds[] = { job->image, job->out, job->disk };
	size_t n_fds = ARRAY_SIZE(fds) - (job->disk < 0 ? 1 : 0);
	struct export_job copy = *job;
	cleanup_buf struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	int r = job->upper < 0 ? confine_run(what, export_child, &copy, fds, n_fds, &result, e)
			       : confine_run_reading(what, job->upper, export_child, &copy, fds,
						     n_fds, &result, e);
	if (r < 0)
		return r;
	if (buf_len(&result) != sizeof(*ret))
		return err_set(e, -EPROTO, "exporting: the helper process reported nonsense");
	/* Byte by byte: the child is not believed to know what a bool is. */
	struct export_report report;
	memcpy(&report, buf_data(&result), sizeof(report));
	const unsigned char *unclean = (const void *)&report.unclean;
	*ret = (struct export_report){ .unclean = *unclean != 0, .lost = report.lost };
	return 0;
}

/* What a process in a user namespace says. */
struct words {
	const struct export_job *job;
	struct export_report report;
	struct err e;
};

static int run_inside(void *ctx)
{
	struct words *w = ctx;
	return run_confined(w->job, &w->report, &w->e);
}

int export_confined(const struct export_job *job, struct export_report *ret, struct err *e)
{
	if (job->upper < 0 || geteuid() == 0)
		return run_confined(job, ret, e);
	struct words *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return err_sys(e, -errno, "memory");
	*w = (struct words){ .job = job };
	int r = userns_call(run_inside, w, e);
	*ret = w->report;
	if (w->e.code < 0)
		*e = w->e;
	munmap(w, sizeof(*w));
	return r;
}
