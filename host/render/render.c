/*
 * Theory of operation: layers are read once, bottom first; entries change the tree, contents go
 * straight into the image. So everything is read, verified, decompressed and hashed one time only.
 * The price: content that a higher layer replaces or removes is in the image, though no name leads
 * to it. If that is more than a quarter of what is needed, the image is written a second time
 * without it; each run verifies all digests of what it reads, so the two cannot differ.
 */
#include "host/render/render.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/image/oci.h"
#include "host/render/confine.h"
#include "host/render/layer.h"
#include "host/render/merge.h"
#include "host/render/squash.h"
#include "host/render/tree.h"

#define WASTE_MIN   (UINT64_C(16) << 20) /* less is never worth a second run */
#define WASTE_RATIO 4

#define SKIP_BYTES (LAYER_ENTRIES_MAX / 8) /* a bit for each entry of a layer */

/* Entries whose content no name leads to, as one bit for each entry of a layer. */
struct skip_list {
	struct arena arena;
	unsigned char *bits[OCI_LAYERS_MAX]; /* NULL: none of this layer */
};

struct render {
	const struct render_job *job;
	const struct skip_list *skip; /* NULL in the first run */
	struct tree *tree;
	struct merge *merge;
	struct squash *squash;
	struct layer *layer; /* the current one */
	struct layer_entry entry;
	uint64_t bytes_left;       /* for the uncompressed bytes of further layers */
	uint64_t apparent;         /* sizes of all files so far */
	struct tree_inode **files; /* all regular files that were written */
	size_t n_files;
	size_t alloc_files;
	struct err *e;
};

static void skip_deinit(struct skip_list *skip)
{
	arena_deinit(&skip->arena);
}

static bool is_skipped(const struct render *r, size_t layer, uint32_t entry)
{
	const unsigned char *bits = r->skip ? r->skip->bits[layer] : NULL;
	return bits && (bits[entry / 8] & 1 << entry % 8);
}

static int mark_skipped(struct skip_list *skip, size_t layer, uint32_t entry)
{
	if (!skip->bits[layer])
		skip->bits[layer] = arena_alloc(&skip->arena, SKIP_BYTES);
	if (!skip->bits[layer])
		return -ENOMEM;
	skip->bits[layer][entry / 8] |= (unsigned char)(1 << entry % 8);
	return 0;
}

static void render_deinit(struct render *r)
{
	layer_free(r->layer);
	squash_free(r->squash);
	merge_free(r->merge);
	tree_free(r->tree);
	free(r->files);
}

static int note_file(struct render *r, struct tree_inode *inode)
{
	if (r->n_files == r->alloc_files) {
		size_t alloc = MAX(2 * r->alloc_files, (size_t)1024);
		struct tree_inode **files = reallocarray(r->files, alloc, sizeof(*files));
		if (!files)
			return err_set(r->e, -ENOMEM, "out of memory");
		r->files = files;
		r->alloc_files = alloc;
	}
	r->files[r->n_files++] = inode;
	return 0;
}

/* Copies the current entry's content into the image. */
static int copy_content(struct render *r, struct tree_inode *inode)
{
	uint64_t size = r->entry.size, done = 0;
	int x = squash_begin_file(r->squash, tree_arena(r->tree), &inode->u.content, size, r->e);
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
	return x < 0 ? x : squash_end_file(r->squash, r->e);
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
	if (x < 0)
		return err_context(r->e, "entry \"%.200s\"", r->entry.path);
	return note_file(r, inode);
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
	}
}

static int render_layer(struct render *r, size_t i)
{
	const struct render_layer *l = &r->job->layers[i];
	const struct digest *blob = l->has_blob ? &l->blob : NULL;
	merge_begin_layer(r->merge);
	int x = layer_new(&l->span, r->bytes_left, &r->layer, r->e);
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

static int render_run(struct render *r)
{
	const struct render_job *job = r->job;
	r->bytes_left = job->bytes_max;
	if (tree_new(&r->tree) < 0 || merge_new(r->tree, &r->merge) < 0)
		return err_set(r->e, -ENOMEM, "out of memory");
	int x = squash_new(job->out, job->where, &r->squash, r->e);
	for (size_t i = 0; i < job->n_layers && x == 0; i++) {
		x = render_layer(r, i);
		if (x < 0) {
			const struct digest *id = job->layers[i].has_blob ? &job->layers[i].blob
									  : &job->layers[i].diff_id;
			return err_context(r->e, "layer %zu of %zu (sha256:%.12s...)", i + 1,
					   job->n_layers, id->hex);
		}
	}
	return x < 0 ? x : squash_finish(r->squash, r->tree, r->e);
}

/* Finds what nothing leads to. *ret_worth says whether a second run is worth it. */
static int find_waste(const struct render *r, struct skip_list *skip, bool *ret_worth)
{
	uint64_t waste = 0, use = 0;
	for (size_t i = 0; i < r->n_files; i++) {
		const struct tree_inode *inode = r->files[i];
		uint64_t bytes = inode->u.content.size - inode->u.content.sparse;
		if (inode->nlink > 0) {
			use += bytes;
			continue;
		}
		waste += bytes;
		if (mark_skipped(skip, (size_t)inode->layer - 1, inode->entry) < 0)
			return -ENOMEM;
	}
	*ret_worth = waste >= WASTE_MIN && waste > use / WASTE_RATIO;
	return 0;
}

/* One run. @skip is what to leave out, or NULL; then @ret_skip gets what could be left out. */
static int render_once(const struct render_job *job, const struct skip_list *skip,
		       struct skip_list *ret_skip, bool *ret_again, struct err *e)
{
	CLEANUP(render_deinit) struct render r = { .job = job, .skip = skip, .e = e };
	int x = render_run(&r);
	if (x < 0 || skip)
		return x;
	return find_waste(&r, ret_skip, ret_again) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

int render_here(const struct render_job *job, struct err *e)
{
	CLEANUP(skip_deinit) struct skip_list skip = { 0 };
	bool again = false;
	arena_init(&skip.arena, OCI_LAYERS_MAX * 3 * SKIP_BYTES); /* chunks are not filled */
	int r = render_once(job, NULL, &skip, &again, e);
	if (r < 0 || !again)
		return r;
	if (ftruncate(job->out, 0) < 0)
		return err_sys(e, -errno, "writing the file system image");
	return render_once(job, &skip, NULL, NULL, e);
}

static int render_child(void *ctx, struct buf *result, struct err *e)
{
	(void)result;
	return render_here(ctx, e);
}

int render_confined(const struct render_job *job, struct err *e)
{
	int fds[OCI_LAYERS_MAX + 1];
	for (size_t i = 0; i < job->n_layers; i++)
		fds[i] = job->layers[i].span.fd;
	fds[job->n_layers] = job->out;
	struct render_job copy = *job;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	return confine_run("rendering", render_child, &copy, fds, job->n_layers + 1, &result, e);
}
