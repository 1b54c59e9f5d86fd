/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/rendered.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "images/render/render.h"
#include "images/store/store_int.h"
#include "lib/os/fd.h"

/* What rendering and checking work on. */
struct work {
	const struct store *store;
	const struct layout_image *image;
	struct render_layer *layers;
};

static void work_deinit(struct work *w)
{
	layout_layers_free(w->layers, layout_n_layers(w->image));
}

static struct render_job make_job(const struct work *w, int out)
{
	const struct store_settings *settings = store_settings(w->store);
	return (struct render_job){
		.layers = w->layers,
		.n_layers = layout_n_layers(w->image),
		.out = out,
		.where = store_path(w->store),
		.bytes_max = settings->bytes_max,
		.compression = settings->compression,
		.level = settings->level,
		.paths = (const char *const *)w->image->whitelist.v,
		.n_paths = w->image->whitelist.n,
	};
}

/* Whoever could not publish it need not begin. */
static int check_may_render(const struct store *s, struct err *e)
{
	if (store_may_render(s))
		return 0;
	return err_set(
		e, -EACCES,
		"it has to be rendered, and only the owner of %s may do that (let them fetch or "
		"verify it)",
		store_path(s));
}

/* Renders into a file without a name, then publishes it in place of what is there if @again. */
static int render(const struct work *w, bool again, struct err *e)
{
	const struct store *s = w->store;
	const struct digest *chain = &w->image->chain;
	cleanup_fd int out = openat(store_tmp_dirfd(s), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(e, -errno, "cannot create a file in %s/tmp", store_path(s));
	struct render_job job = make_job(w, out);
	struct render_result result;
	int r = render_confined(&job, &result, e);
	if (r == 0 && again) /* now, so that others find none for a moment only */
		r = store_remove_tree(s, chain, e);
	return r < 0 ? r : store_publish_tree(s, chain, out, &result.content, e);
}

/* Renders unless somebody else did it while we waited for the lock. */
static int render_once(const struct work *w, int *ret_fd, bool *ret_made, struct err *e)
{
	const struct digest *chain = &w->image->chain;
	cleanup_fd int lock = -EBADF;
	int r = store_lock_tree(w->store, chain, &lock, e);
	if (r == 0)
		r = store_find_tree(w->store, chain, ret_fd, e);
	if (r != STORE_MISSING)
		return r;
	r = render(w, false, e);
	if (r == 0)
		r = store_find_tree(w->store, chain, ret_fd, e);
	if (r == STORE_MISSING)
		return err_set(e, -ENOENT, "the rendered image was removed (try again)");
	if (r == 0)
		*ret_made = true;
	return r;
}

int rendered_open(const struct store *s, const struct layout_image *i, int layout_fd, int *ret_fd,
		  bool *ret_made, struct err *e)
{
	*ret_made = false;
	int r = store_find_tree(s, &i->chain, ret_fd, e);
	if (r != STORE_MISSING)
		return r;
	CLEANUP(work_deinit) struct work w = { .store = s, .image = i };
	r = check_may_render(s, e);
	if (r == 0)
		r = layout_open_layers(layout_fd, i, &w.layers, e);
	return r < 0 ? r : render_once(&w, ret_fd, ret_made, e);
}

int rendered_verify(const struct store *s, const struct layout_image *i, int layout_fd,
		    bool *ret_made, struct err *e)
{
	cleanup_fd int tree = -EBADF;
	*ret_made = false;
	CLEANUP(work_deinit) struct work w = { .store = s, .image = i };
	int r = layout_open_layers(layout_fd, i, &w.layers, e);
	if (r == 0 && store_may_render(s))
		r = store_find_tree(s, &i->chain, &tree, NULL) == STORE_MISSING
			    ? render_once(&w, &tree, ret_made, e)
			    : 0;
	if (r < 0 || *ret_made)
		return r;
	struct render_job job = make_job(&w, -EBADF);
	return render_check_confined(&job, e);
}

int rendered_check(const struct store *s, const struct layout_image *i, struct err *e)
{
	cleanup_fd int fd = -EBADF;
	struct digest want, got;
	int r = store_find_tree(s, &i->chain, &fd, e);
	if (r != 0)
		return r;
	if (store_tree_content(s, &i->chain, &want) < 0) {
		err_set(e, -EBADMSG, "nobody knows the digest of its content");
		return RENDERED_DAMAGED;
	}
	r = render_content_digest(fd, &got, e);
	if (r == -EBADMSG)
		return RENDERED_DAMAGED;
	if (r < 0 || digest_equal(&want, &got))
		return r;
	err_set(e, -EBADMSG, "the digest of its content is %.12s... instead of %.12s...", got.hex,
		want.hex);
	return RENDERED_DAMAGED;
}

int rendered_repair(const struct store *s, const struct layout_image *i, int layout_fd,
		    struct err *e)
{
	cleanup_fd int lock = -EBADF;
	CLEANUP(work_deinit) struct work w = { .store = s, .image = i };
	int r = check_may_render(s, e);
	if (r == 0)
		r = layout_open_layers(layout_fd, i, &w.layers, e);
	if (r == 0)
		r = store_lock_tree(s, &i->chain, &lock, e);
	return r < 0 ? r : render(&w, true, e);
}
