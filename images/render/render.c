/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: layers are read once, bottom first; entries change the tree, contents go
 * straight into the image. So everything is read, verified, decompressed and hashed one time only.
 * The price: content that a higher layer replaces or removes is in the image, though no name leads
 * to it. If that is more than a quarter of what is needed, the contents are written a second time
 * without it; each run verifies all digests of what it reads, so the two cannot differ.
 */
#include "images/render/render.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "images/render/confine.h"
#include "images/render/layer.h"
#include "images/render/merge.h"
#include "images/render/squash.h"
#include "images/render/tree.h"
#include "images/spec/oci.h"
#include "lib/base/hex.h"

#define WASTE_MIN   (UINT64_C(16) << 20) /* less is never worth a second run */
#define WASTE_RATIO 4

/* All bits of a skip list: 16 million entries. An image with more keeps what is not needed. */
#define SKIP_BYTES_MAX  ((size_t)2 << 20)
#define SKIP_BYTES_STEP ((size_t)4096)

/* Entries whose content no name leads to, as one bit for each entry of a layer. */
struct skip_list {
	unsigned char *bits[OCI_LAYERS_MAX]; /* owned */
	size_t size[OCI_LAYERS_MAX];         /* bytes */
	size_t total;                        /* bytes of all layers */
	bool full;                           /* bits are missing */
};

struct render {
	const struct render_job *job;
	struct skip_list *skip; /* what to leave out, or in the first run what could be */
	bool again;             /* the second run */
	struct tree *tree;
	struct merge *merge;
	struct squash *squash;
	struct layer *layer; /* the current one */
	struct layer_entry entry;
	uint64_t bytes_left; /* for the uncompressed bytes of further layers */
	uint64_t apparent;   /* sizes of all files so far */
	uint64_t written;    /* the same without holes */
	uint64_t wasted;     /* of these: what no name leads to */
	struct err *e;
};

static void skip_deinit(struct skip_list *skip)
{
	for (size_t i = 0; i < OCI_LAYERS_MAX; i++)
		free(skip->bits[i]);
}

static bool is_skipped(const struct render *r, size_t layer, uint32_t entry)
{
	return r->again && entry / 8 < r->skip->size[layer] &&
	       (r->skip->bits[layer][entry / 8] & 1 << entry % 8);
}

static void mark_skipped(struct skip_list *skip, size_t layer, uint32_t entry)
{
	size_t old = skip->size[layer];
	if (entry / 8 >= old) {
		size_t size = (entry / 8 / SKIP_BYTES_STEP + 1) * SKIP_BYTES_STEP;
		bool fits = size - old <= SKIP_BYTES_MAX - skip->total;
		unsigned char *bits = fits ? realloc(skip->bits[layer], size) : NULL;
		if (!bits) {
			skip->full = true;
			return;
		}
		memset(bits + old, 0, size - old);
		skip->bits[layer] = bits;
		skip->size[layer] = size;
		skip->total += size - old;
	}
	skip->bits[layer][entry / 8] |= (unsigned char)(1 << entry % 8);
}

static void render_deinit(struct render *r)
{
	layer_free(r->layer);
	squash_free(r->squash);
	merge_free(r->merge);
	tree_free(r->tree);
}

/* Frees inodes that lost their names, and notes whose content that makes useless. */
static void drop_gone(struct render *r)
{
	struct tree_inode *inode;
	while ((inode = tree_take_gone(r->tree))) {
		struct tree_content c = { .size = 0 };
		if (S_ISREG(inode->mode))
			tree_get_content(inode, &c);
		if (c.size > c.sparse && !r->again) {
			r->wasted += c.size - c.sparse;
			mark_skipped(r->skip, inode->layer - 1U, inode->entry);
		}
		tree_inode_free(r->tree, inode);
	}
}

/* Copies the current entry's content into the image. */
static int copy_content(struct render *r, struct tree_inode *inode)
{
	uint64_t size = r->entry.size, done = 0;
	int x = squash_begin_file(r->squash, size, r->e);
	while (x == 0) {
		const void *data;
		size_t len;
		uint64_t offset;
		x = layer_data(r->layer, &data, &len, &offset, r->e);
		if (x == 0 && offset > done)
			x = squash_hole(r->squash, offset - done, r->e);
		if (x == 0)
			x = squash_data(r->squash, data, len, r->e);
		if (x == 0)
			done = offset + len;
	}
	if (x == LAYER_END)
		x = size > done ? squash_hole(r->squash, size - done, r->e) : 0;
	if (x == 0)
		x = squash_end_file(r->squash, r->tree, inode, r->e);
	if (x < 0)
		return x;
	struct tree_content c;
	tree_get_content(inode, &c);
	r->written += c.size - c.sparse;
	return 0;
}

static int render_file(struct render *r, size_t layer, struct tree_inode *inode)
{
	if (is_skipped(r, layer, r->entry.number))
		return 0;
	if (r->entry.size > r->job->bytes_max - r->apparent)
		return err_set(r->e, -EFBIG,
			       "the files of the image have more than %llu bytes (if that is "
			       "intended, raise HUSK_IMAGE_BYTES_MAX)",
			       (unsigned long long)r->job->bytes_max);
	r->apparent += r->entry.size;
	int x = copy_content(r, inode);
	return x < 0 ? err_context(r->e, "entry \"%.200s\"", r->entry.path) : 0;
}

static int render_entries(struct render *r, size_t layer)
{
	for (;;) {
		int x = layer_next(r->layer, &r->entry, r->e);
		if (x != 0)
			return x == LAYER_END ? 0 : x;
		struct tree_inode *inode;
		x = merge_apply(r->merge, &r->entry, &inode, r->e);
		if (x == 0 && inode)
			x = render_file(r, layer, inode);
		if (x < 0)
			return x;
		drop_gone(r);
	}
}

static int render_layer(struct render *r, size_t i)
{
	const struct render_layer *l = &r->job->layers[i];
	const struct digest *blob = l->has_blob ? &l->blob : NULL;
	merge_begin_layer(r->merge, l->kind == LAYER_OCI);
	int x = layer_new(&l->span, l->kind, r->bytes_left, &r->layer, r->e);
	if (x == 0)
		x = render_entries(r, i);
	if (x == 0)
		x = layer_verify(r->layer, blob, &l->diff_id, r->e);
	if (x < 0 && blob)
		layer_explain(&l->span, blob, r->e);
	if (x < 0)
		return x;
	r->bytes_left -= layer_bytes(r->layer);
	layer_free(TAKE_PTR(r->layer));
	return 0;
}

static int render_layers(struct render *r)
{
	const struct render_job *job = r->job;
	r->bytes_left = job->bytes_max;
	if (tree_new(&r->tree) < 0 || merge_new(r->tree, &r->merge) < 0)
		return err_set(r->e, -ENOMEM, "out of memory");
	int x = squash_new(job->out, job->where, job->compression, job->level, &r->squash, r->e);
	for (size_t i = 0; i < job->n_layers && x == 0; i++) {
		x = render_layer(r, i);
		if (x < 0) {
			const struct digest *id = job->layers[i].has_blob ? &job->layers[i].blob
									  : &job->layers[i].diff_id;
			return err_context(r->e, "layer %zu of %zu (sha256:%.12s...)", i + 1,
					   job->n_layers, id->hex);
		}
	}
	if (x == 0 && job->n_paths > 0)
		x = merge_keep_only(r->merge, job->paths, job->n_paths, r->e);
	if (x == 0)
		drop_gone(r);
	return x;
}

/* True if the image is worth to be written again. */
static bool is_wasteful(const struct render *r)
{
	return !r->again && !r->skip->full && r->wasted >= WASTE_MIN &&
	       r->wasted > (r->written - r->wasted) / WASTE_RATIO;
}

/* One run. *ret_again says that it was given up because another one, with @skip, is worth it. */
static int render_once(const struct render_job *job, struct skip_list *skip, bool *ret_again,
		       struct render_result *ret, struct err *e)
{
	CLEANUP(render_deinit)
	struct render r = { .job = job, .skip = skip, .again = *ret_again, .e = e };
	int x = render_layers(&r);
	if (x < 0)
		return x;
	*ret_again = is_wasteful(&r);
	if (!*ret_again)
		x = squash_finish(r.squash, r.tree, e);
	if (x < 0 || *ret_again)
		return x;
	squash_digest(r.squash, &ret->content);
	ret->size = squash_size(r.squash);
	return 0;
}

int render_here(const struct render_job *job, struct render_result *ret, struct err *e)
{
	CLEANUP(skip_deinit) struct skip_list skip = { .total = 0 };
	struct render_result result = { .size = 0 };
	bool again = false;
	if (job->n_layers > OCI_LAYERS_MAX)
		return err_set(e, -E2BIG, "the image has more than %zu layers", OCI_LAYERS_MAX);
	int r = render_once(job, &skip, &again, &result, e);
	if (r == 0 && again && ftruncate(job->out, 0) < 0)
		return err_sys(e, -errno, "writing the file system image");
	if (r == 0 && again)
		r = render_once(job, &skip, &again, &result, e);
	if (r == 0 && ret)
		*ret = result;
	return r;
}

static int render_child(void *ctx, struct buf *report, struct err *e)
{
	const struct render_job *job = ctx;
	struct render_result result;
	memset(&result, 0, sizeof(result)); /* padding, too: it is sent */
	int r = render_here(job, &result, e);
	if (r < 0)
		return r;
	return buf_append(report, &result, sizeof(result)) < 0
		       ? err_set(e, -ENOMEM, "out of memory")
		       : 0;
}

/* Takes what the child reported, which is not trusted. */
static int take_report(const struct buf *report, struct render_result *ret, struct err *e)
{
	struct render_result result;
	if (buf_len(report) != sizeof(result))
		return err_set(e, -EPROTO, "rendering: the helper process reported nonsense");
	memcpy(&result, buf_data(report), sizeof(result));
	if (!hex_is_valid(result.content.hex, DIGEST_HEX_LEN))
		return err_set(e, -EPROTO, "rendering: the helper process reported no digest");
	if (ret)
		*ret = result;
	return 0;
}

/* The descriptors of the layers, and how many these are, or -E2BIG with @e. */
static int layer_fds(const struct render_job *job, int fds[OCI_LAYERS_MAX], struct err *e)
{
	if (job->n_layers > OCI_LAYERS_MAX)
		return err_set(e, -E2BIG, "the image has more than %zu layers", OCI_LAYERS_MAX);
	for (size_t i = 0; i < job->n_layers; i++)
		fds[i] = job->layers[i].span.fd;
	return (int)job->n_layers;
}

/* What the child may take: more if a layer, in whose own memory its window is, has a large one. */
static size_t memory_for(const struct render_job *job)
{
	enum stream_compression c = STREAM_PLAIN;
	for (size_t i = 0; i < job->n_layers; i++)
		if (stream_detect_span(&job->layers[i].span, &c) == 0 && c == STREAM_ZSTD)
			return CONFINE_MEMORY_ZSTD;
	return CONFINE_MEMORY_MAX;
}

int render_confined(const struct render_job *job, struct render_result *ret, struct err *e)
{
	int fds[OCI_LAYERS_MAX + 1];
	int n = layer_fds(job, fds, e);
	if (n < 0)
		return n;
	fds[n] = job->out;
	struct render_job copy = *job;
	cleanup_buf struct buf report;
	buf_init(&report, CONFINE_RESULT_MAX);
	int r = confine_run_within("rendering", memory_for(job), render_child, &copy, fds,
				   (size_t)n + 1, &report, e);
	return r < 0 ? r : take_report(&report, ret, e);
}

static int check_layer(const struct render_layer *l, uint64_t *bytes_left, struct err *e)
{
	CLEANUP(stream_freep) struct stream *s = NULL;
	int r = stream_new(&l->span, l->kind != LAYER_OCI, *bytes_left, &s, e);
	if (r < 0 || !s)
		return r;
	r = stream_verify(s, l->has_blob ? &l->blob : NULL, &l->diff_id, e);
	*bytes_left -= stream_bytes(s);
	return r;
}

static int check_child(void *ctx, struct buf *result, struct err *e)
{
	const struct render_job *job = ctx;
	uint64_t bytes_left = job->bytes_max;
	(void)result;
	for (size_t i = 0; i < job->n_layers; i++)
		if (check_layer(&job->layers[i], &bytes_left, e) < 0)
			return err_context(e, "layer %zu of %zu (sha256:%.12s...)", i + 1,
					   job->n_layers, job->layers[i].diff_id.hex);
	return 0;
}

int render_check_confined(const struct render_job *job, struct err *e)
{
	int fds[OCI_LAYERS_MAX];
	int n = layer_fds(job, fds, e);
	struct render_job copy = *job;
	cleanup_buf struct buf report;
	buf_init(&report, CONFINE_RESULT_MAX);
	return n < 0 ? n : confine_run("verifying", check_child, &copy, fds, (size_t)n, &report, e);
}
