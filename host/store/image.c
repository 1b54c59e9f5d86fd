/* SPDX-License-Identifier: Apache-2.0 */
#include "host/store/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/appc/spec/aci.h"
#include "host/store/catalog.h"
#include "host/store/layout.h"
#include "host/store/rendered.h"
#include "host/store/store_int.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

struct image {
	struct store *store;
	struct layout_image documents;
	struct image_config config; /* borrows from the documents */
	char name[IMAGE_NAME_MAX + 1];
	char id[IMAGE_ID_LEN + 1];
	char chain_id[IMAGE_ID_LEN + 1];
	int tree; /* the rendered file, with a shared lock */
	uint64_t size;
	bool rendered;
	int64_t open_ms;
};

void image_free(struct image *i)
{
	if (!i)
		return;
	layout_image_deinit(&i->documents);
	fd_close(i->tree);
	free(i);
}

const char *image_id(const struct image *i)
{
	return i->id;
}

const char *image_name(const struct image *i)
{
	return i->name;
}

void image_set_name(struct image *i, const char *name)
{
	if (str_is_printable(name, IMAGE_NAME_MAX))
		str_copy(i->name, sizeof(i->name), name);
}

const char *image_chain_id(const struct image *i)
{
	return i->chain_id;
}

uint64_t image_size(const struct image *i)
{
	return i->size;
}

bool image_was_rendered(const struct image *i)
{
	return i->rendered;
}

void image_set_rendered(struct image *i)
{
	i->rendered = true;
}

int64_t image_open_ms(const struct image *i)
{
	return i->open_ms;
}

int image_rootfs(const struct image *i)
{
	return i->tree;
}

const char *image_manifest_type(const struct image *i)
{
	const char *type = i->documents.manifest.media_type;
	return oci_is_manifest_type(type) ? type : OCI_TYPE_MANIFEST;
}

bool image_is_appc(const struct image *i)
{
	return i->documents.kind == IMAGE_ACI;
}

int image_read_appc(const struct image *i, char **ret, size_t *ret_len, struct err *e)
{
	const struct oci_descriptor *d = &i->documents.manifest.config;
	return layout_read_document(store_dirfd(i->store, STORE_LAYOUT), &d->digest, d->size,
				    "manifest", ret, ret_len, e);
}

int image_check_platform(const struct image *i, struct err *e)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	cleanup_free char *text = NULL;
	size_t len = 0;
	aci_manifest_init(&m);
	if (!image_is_appc(i))
		return 0;
	int r = image_read_appc(i, &text, &len, e);
	if (r == 0)
		r = aci_manifest_parse(text, len, &m, e);
	return r < 0 ? r : aci_check_platform(&m, e);
}

int image_open_blobs(const struct image *i, struct blob_file **ret, size_t *ret_n, struct err *e)
{
	return layout_open_blobs(store_dirfd(i->store, STORE_LAYOUT), &i->documents, ret, ret_n, e);
}

const struct image_config *image_config(const struct image *i)
{
	return &i->config;
}

int image_link_rootfs(const struct image *i, int dirfd, const char *name, struct err *e)
{
	if (i->tree < 0)
		return err_set(e, -EBADF, "image %.19s was opened without its rendered file",
			       i->id);
	return store_link_tree(i->store, &i->documents.chain, dirfd, name, e);
}

/* Everything about the image that is known without its layers. */
static void describe(struct image *i)
{
	const struct oci_config *c = &i->documents.config;
	snprintf(i->chain_id, sizeof(i->chain_id), "sha256-%s", i->documents.chain.hex);
	i->config = (struct image_config){
		.entrypoint = c->entrypoint,
		.cmd = c->cmd,
		.env = c->env,
		.working_dir = c->working_dir,
		.user = c->user,
	};
}

/* Reads record and documents. 0, STORE_MISSING, or -errno with @e. */
static int read_documents(struct image *i, const struct digest *id, struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	int r = catalog_get(i->store, id, &record, e);
	if (r != 0)
		return r;
	image_set_name(i, record_name(&record));
	record_id_text(&record, i->id);
	r = layout_read_image(store_dirfd(i->store, STORE_LAYOUT), id, record.kind == IMAGE_ACI,
			      record.below, record.n_below, &i->documents, e);
	if (r == -ENOENT)
		return STORE_MISSING;
	if (r < 0)
		return r;
	describe(i);
	return 0;
}

static int open_rootfs(struct image *i, struct err *e)
{
	struct stat st;
	int fd = store_dirfd(i->store, STORE_LAYOUT);
	int r = rendered_open(i->store, &i->documents, fd, &i->tree, &i->rendered, e);
	if (r == -EBADMSG)
		layout_drop_damaged(fd, &i->documents);
	if (r < 0)
		return r;
	if (fstat(i->tree, &st) < 0)
		return err_sys(e, -errno, "cannot read the rendered image");
	i->size = (uint64_t)st.st_size;
	return 0;
}

int image_open_documents(struct store *s, const struct digest *id, struct image **ret,
			 struct err *e)
{
	cleanup_image struct image *i = calloc(1, sizeof(*i));
	if (!i)
		return err_set(e, -ENOMEM, "out of memory");
	i->store = s;
	i->tree = -EBADF;
	layout_image_init(&i->documents);
	int r = read_documents(i, id, e);
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
	int r = rendered_check(i->store, &i->documents, e);
	if (r < 0)
		return r;
	*ret = r == 0 ? IMAGE_INTACT : r == STORE_MISSING ? IMAGE_NOT_RENDERED : IMAGE_DAMAGED;
	return 0;
}

int image_repair(const struct image *i, struct err *e)
{
	int fd = store_dirfd(i->store, STORE_LAYOUT);
	int r = rendered_repair(i->store, &i->documents, fd, e);
	if (r == -EBADMSG)
		layout_drop_damaged(fd, &i->documents);
	return r;
}
