/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/spec/aci.h"
#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/rendered.h"
#include "images/store/store_int.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

/* An image, and what it is made of. */
struct opened {
	struct image image; /* borrows from the documents */
	struct store *store;
	struct layout_image documents;
};

/* Every image is in one of these. */
static const struct opened *opened(const struct image *i)
{
	return (const struct opened *)i;
}

void image_free(struct image *i)
{
	struct opened *o = (struct opened *)i;
	if (!o)
		return;
	layout_image_deinit(&o->documents);
	fd_close(i->rootfs);
	free(o);
}

void image_set_name(struct image *i, const char *name)
{
	if (str_is_text(name, IMAGE_NAME_MAX))
		str_copy(i->name, sizeof(i->name), name);
}

int image_read_appc(const struct image *i, char **ret, size_t *ret_len, struct err *e)
{
	const struct opened *o = opened(i);
	const struct oci_descriptor *d = &o->documents.manifest.config;
	return layout_read_document(store_dirfd(o->store, STORE_LAYOUT), &d->digest, d->size,
				    "manifest", ret, ret_len, e);
}

int image_check_platform(const struct image *i, struct err *e)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	cleanup_free char *text = NULL;
	size_t len = 0;
	aci_manifest_init(&m);
	if (!i->is_appc)
		return 0;
	int r = image_read_appc(i, &text, &len, e);
	if (r == 0)
		r = aci_manifest_parse(text, len, &m, e);
	return r < 0 ? r : aci_check_platform(&m, e);
}

int image_open_blobs(const struct image *i, struct blob_file **ret, size_t *ret_n, struct err *e)
{
	const struct opened *o = opened(i);
	return layout_open_blobs(store_dirfd(o->store, STORE_LAYOUT), &o->documents, ret, ret_n, e);
}

int image_link_rootfs(const struct image *i, int dirfd, const char *name, struct err *e)
{
	const struct opened *o = opened(i);
	if (i->rootfs < 0)
		return err_set(e, -EBADF, "image %.19s was opened without its rendered file",
			       i->id);
	return store_link_tree(o->store, &o->documents.chain, dirfd, name, e);
}

/* Everything about the image that is known without its layers. */
static void describe(struct opened *o)
{
	const struct oci_config *c = &o->documents.config;
	const char *type = o->documents.manifest.media_type;
	struct image *i = &o->image;
	snprintf(i->chain_id, sizeof(i->chain_id), "sha256-%s", o->documents.chain.hex);
	i->is_appc = o->documents.kind == IMAGE_ACI;
	i->manifest_type = oci_is_manifest_type(type) ? type : OCI_TYPE_MANIFEST;
	i->config = (struct image_config){
		.entrypoint = c->entrypoint,
		.cmd = c->cmd,
		.env = c->env,
		.ports = c->ports,
		.volumes = c->volumes,
		.stop_signal = c->stop_signal,
		.working_dir = c->working_dir,
		.user = c->user,
	};
}

/* Reads record and documents. 0, STORE_MISSING, or -errno with @e. */
static int read_documents(struct opened *o, const struct digest *id, struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	int r = catalog_get(o->store, id, &record, e);
	if (r != 0)
		return r;
	image_set_name(&o->image, record_name(&record));
	record_id_text(&record, o->image.id);
	r = layout_read_image(store_dirfd(o->store, STORE_LAYOUT), id, record.kind == IMAGE_ACI,
			      record.below, record.n_below, &o->documents, e);
	if (r == -ENOENT)
		return STORE_MISSING;
	if (r < 0)
		return r;
	describe(o);
	return 0;
}

static int open_rootfs(struct image *i, struct err *e)
{
	struct stat st;
	const struct opened *o = opened(i);
	int fd = store_dirfd(o->store, STORE_LAYOUT);
	int r = rendered_open(o->store, &o->documents, fd, &i->rootfs, &i->rendered, e);
	if (r == -EBADMSG)
		layout_drop_damaged(fd, &o->documents);
	if (r < 0)
		return r;
	if (fstat(i->rootfs, &st) < 0)
		return err_sys(e, -errno, "cannot read the rendered image");
	i->size = (uint64_t)st.st_size;
	return 0;
}

int image_open_documents(struct store *s, const struct digest *id, struct image **ret,
			 struct err *e)
{
	struct opened *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(e, -ENOMEM, "out of memory");
	cleanup_image struct image *i = &o->image;
	i->rootfs = -EBADF;
	o->store = s;
	layout_image_init(&o->documents);
	int r = read_documents(o, id, e);
	if (r < 0)
		return err_context(e, "image sha256-%.12s", id->hex);
	if (r == 0)
		*ret = TAKE_PTR(i);
	return r;
}

int image_open(struct store *s, const struct digest *id, struct image **ret, struct err *e)
{
	int64_t start = clock_monotonic_ns();
	cleanup_image struct image *i = NULL;
	int r = image_open_documents(s, id, &i, e);
	if (r != 0)
		return r;
	r = open_rootfs(i, e);
	if (r < 0)
		return err_context(e, "image sha256-%.12s", id->hex);
	catalog_use(s, id);
	i->open_ms = (clock_monotonic_ns() - start) / NS_PER_MS;
	*ret = TAKE_PTR(i);
	return 0;
}

int image_verify(const struct image *i, enum image_health *ret, struct err *e)
{
	const struct opened *o = opened(i);
	int r = rendered_check(o->store, &o->documents, e);
	if (r < 0)
		return r;
	*ret = r == 0 ? IMAGE_INTACT : r == STORE_MISSING ? IMAGE_NOT_RENDERED : IMAGE_DAMAGED;
	return 0;
}

int image_repair(const struct image *i, struct err *e)
{
	const struct opened *o = opened(i);
	int fd = store_dirfd(o->store, STORE_LAYOUT);
	int r = rendered_repair(o->store, &o->documents, fd, e);
	if (r == -EBADMSG)
		layout_drop_damaged(fd, &o->documents);
	return r;
}
