/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/open_images.h"

#include <errno.h>
#include <string.h>

#include "host/manifest/appc_app.h"
#include "host/manifest/compose.h"
#include "images/images.h"

void image_list_deinit(struct image_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		image_free(l->v[i]);
	l->n = 0;
	store_free(l->store);
	l->store = NULL;
}

/* What the image wants for its app, where the user has not said it. */
static int apply_wishes(const struct app_options *o, const struct image *image, struct pod_app *app,
			struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len;
	if (!image->is_appc || o->instead_of_image)
		return 0;
	int r = image_read_appc(image, &text, &len, e);
	if (r == 0)
		r = wishes_apply(text, len, app, e);
	return r < 0 ? err_context(e, "image \"%s\"", o->image) : 0;
}

/* Opens the image of one app and adds the app to the manifest. */
static int add_app(const struct run_request *q, const struct app_options *o, struct pod_manifest *m,
		   struct image_list *images, struct err *e)
{
	const struct fetch_request fetch = {
		.reference = o->image,
		.signature = o->signature,
		.policy = q->pull_policy,
		.options = q->fetch,
	};
	struct image *image = NULL;
	int r = fetch_image(images->store, &fetch, &image, e);
	if (r < 0 && o->maybe_argument && e->code < 0)
		return err_context(e, POD_TAKEN_FOR_IMAGE, o->image);
	if (r < 0)
		return r;
	images->v[images->n++] = image;
	fetch_note(&q->fetch, "using image %s: %s in %lld ms", image->id,
		   image->rendered ? "rendered" : "found rendered", (long long)image->open_ms);
	if (image_check_platform(image, e) < 0)
		return err_context(e, "image \"%s\"", o->image);
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	r = compose_app(o, image->name, image->id, &image->config, &q->env, &app, e);
	if (r == 0)
		r = apply_wishes(o, image, &app, e);
	if (r < 0)
		return r;
	r = pod_manifest_add(m, &app);
	if (r == -EEXIST)
		return err_set(e, r,
			       "error: multiple apps with name %s (give each its own with --name)",
			       app.name);
	return r < 0 ? err_sys(e, r, "app \"%s\"", app.name) : 0;
}

int gather_apps(const struct run_request *q, int data_fd, const char *data_path,
		struct pod_manifest *m, struct image_list *images, struct err *e)
{
	int r = store_open(data_fd, data_path, &images->store, e);
	if (r == 0)
		store_configure(images->store, &q->images);
	for (size_t i = 0; r == 0 && i < q->n_apps; i++)
		r = add_app(q, &q->apps[i], m, images, e);
	return r;
}
