#include "host/store/rendered.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "host/render/check.h"
#include "host/store/store_int.h"
#include "lib/os/fd.h"

/* What rendering and checking work on. */
struct work {
	const struct store *store;
	const struct layout_image *image;
	struct render_layer *layers;
};

static void work_deinit(struct work *w)
{
	layout_layers_free(w->layers, w->image->manifest.n_layers);
}

static struct render_job make_job(const struct work *w, int out)
{
	return (struct render_job){
		.layers = w->layers,
		.n_layers = w->image->manifest.n_layers,
		.out = out,
		.where = store_path(w->store),
		.bytes_max = store_bytes_max(w->store),
	};
}

/* Renders into a file without a name, then publishes it. */
static int render(const struct work *w, struct err *e)
{
	const struct store *s = w->store;
	cleanup_fd int out = openat(store_tmp_dirfd(s), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(e, -errno, "cannot create a file in %s/tmp", store_path(s));
	struct render_job job = make_job(w, out);
	int r = render_confined(&job, e);
	return r < 0 ? r : store_publish_tree(s, &w->image->chain, out, e);
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
	r = render(w, e);
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
	if (r == 0 && faccessat(store_trees_dirfd(s), ".", W_OK, AT_EACCESS) == 0)
		r = store_find_tree(s, &i->chain, &tree, e) == STORE_MISSING
			    ? render_once(&w, &tree, ret_made, e)
			    : 0;
	if (r < 0 || *ret_made)
		return r;
	struct render_job job = make_job(&w, -EBADF);
	return check_layers_confined(&job, e);
}
