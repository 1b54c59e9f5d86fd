/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/stream.h"
#include "images/spec/aci.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"

#define FILE_MODE 0440

static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}\n";

void layout_path_of_blob(const struct digest *d, char out[LAYOUT_PATH_LEN])
{
	snprintf(out, LAYOUT_PATH_LEN, LAYOUT_BLOBS "/%s", d->hex);
}

void layout_image_init(struct layout_image *i)
{
	*i = (struct layout_image){ 0 };
	oci_config_init(&i->config);
	strv_init(&i->whitelist, ACI_WHITELIST_MAX);
}

void layout_image_deinit(struct layout_image *i)
{
	if (!i)
		return;
	oci_manifest_deinit(&i->manifest);
	oci_config_deinit(&i->config);
	strv_deinit(&i->whitelist);
	free(i->files);
	layout_image_init(i);
}

/* Makes a directory as open as @fd is, whatever the umask says. 1, 0 if it is there, or -errno. */
static int make_dir(int fd, const char *name)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (mkdirat(fd, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchmodat(fd, name, st.st_mode & 07777, 0) < 0 ? -errno : 1;
}

int layout_make(int fd, bool durable)
{
	int r = make_dir(fd, "blobs");
	if (r > 0 && durable && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* Whoever shares the layout may have put a link in its place. */
	cleanup_fd int blobs = openat(fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = blobs < 0 ? -errno : make_dir(blobs, "sha256");
	if (r > 0 && durable && fsync(blobs) < 0)
		r = -errno;
	if (r < 0)
		return r;
	if (faccessat(fd, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return (durable ? file_write_at : file_replace_at)(fd, "oci-layout", layout_text,
							   sizeof(layout_text) - 1, FILE_MODE);
}

/* Opens a blob, which must be a file of @size bytes. The descriptor, or -errno with @e. */
static int open_blob(int fd, const struct digest *digest, uint64_t size, struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	struct stat st;
	layout_path_of_blob(digest, path);
	cleanup_fd int blob = path_open_beneath(fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (blob == -ENOENT)
		return err_set(e, blob, "blob sha256:%.12s... is missing (fetch the image again)",
			       digest->hex);
	if (blob < 0 || fstat(blob, &st) < 0)
		return err_sys(e, blob < 0 ? blob : -errno, "cannot open blob sha256:%.12s...",
			       digest->hex);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return err_set(e, -EBADMSG,
			       "blob sha256:%.12s... has %lld bytes instead of %llu (fetch the "
			       "image again)",
			       digest->hex, (long long)st.st_size, (unsigned long long)size);
	return TAKE_FD(blob);
}

int layout_read_document(int fd, const struct digest *digest, uint64_t size, const char *what,
			 char **ret, size_t *ret_len, struct err *e)
{
	char path[LAYOUT_PATH_LEN];
	struct digest got;
	layout_path_of_blob(digest, path);
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(fd, path, OCI_JSON_MAX, &text, &len);
	if (r == -ENOENT)
		return err_set(e, r, "its %s is missing (fetch the image again)", what);
	if (r < 0)
		return err_sys(e, r, "cannot read its %s", what);
	digest_of(text, len, &got);
	if (!digest_equal(&got, digest) || (size != UINT64_MAX && size != len))
		return err_set(e, -EBADMSG,
			       "its %s is damaged: it is sha256:%.12s... instead of "
			       "sha256:%.12s... (fetch the image again)",
			       what, got.hex, digest->hex);
	*ret = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}

/* Hashes the parts of a name for what rendering gives. */
static void hash_text(struct hasher *h, const char *text)
{
	hasher_update(h, text, strlen(text) + 1);
}

/*
 * The name of what rendering gives. Layers of other kinds have another meaning than those of an OCI
 * image, so equal bytes must not give equal names.
 */
static void name_chain(struct layout_image *i)
{
	struct hasher h;
	digest_chain(i->config.diff_ids, i->config.n_layers, &i->chain);
	if (i->kind == IMAGE_OCI)
		return;
	hasher_init(&h);
	hash_text(&h, i->kind == IMAGE_ACI ? "aci" : "rootfs");
	for (size_t k = 0; k < i->n_below; k++)
		hash_text(&h, layout_below(i)[k].digest.hex);
	hash_text(&h, i->chain.hex);
	for (size_t k = 0; k < i->whitelist.n; k++)
		hash_text(&h, i->whitelist.v[k]);
	hasher_finish(&h, &i->chain);
}

/* What an ACI's manifest says, as a configuration. */
static int take_appc(struct layout_image *i, const char *text, size_t len, struct err *e)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	struct oci_config *c = &i->config;
	aci_manifest_init(&m);
	int r = aci_manifest_parse(text, len, &m, e);
	if (r < 0)
		return r;
	c->diff_ids = calloc(1, sizeof(*c->diff_ids));
	if (!c->diff_ids || strv_extend(&c->entrypoint, &m.exec) < 0 ||
	    strv_extend(&c->env, &m.env) < 0 || strv_extend(&i->whitelist, &m.whitelist) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	c->n_layers = 1;
	c->diff_ids[0] = i->manifest.layers[0].digest; /* it is not compressed */
	str_copy(c->working_dir, sizeof(c->working_dir), m.working_dir);
	str_copy(c->user, sizeof(c->user), m.user);
	return 0;
}

static void add_file(struct layout_image *i, const struct oci_descriptor *d)
{
	i->files[i->n_own++] = (struct blob_ref){ d->digest, d->size };
	i->size += d->size;
}

/* Lists the image's own blobs, and makes room for @n_below. */
static int list_files(struct layout_image *i, size_t manifest_len, size_t n_below, struct err *e)
{
	const struct oci_manifest *m = &i->manifest;
	i->files = calloc(2 + m->n_layers + n_below, sizeof(*i->files));
	if (!i->files)
		return err_set(e, -ENOMEM, "out of memory");
	add_file(i, &(struct oci_descriptor){ .digest = i->id, .size = manifest_len });
	add_file(i, &m->config);
	for (size_t k = 0; k < m->n_layers; k++)
		add_file(i, &m->layers[k]);
	return 0;
}

/* The layers of the images below, of which each has one. */
static int read_below(int fd, const struct digest *ids, size_t n, struct layout_image *ret,
		      struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *text = NULL;
		size_t len = 0;
		CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
		int r = layout_read_document(fd, &ids[i], UINT64_MAX, "dependency's manifest",
					     &text, &len, e);
		if (r == 0)
			r = oci_manifest_parse(text, len, &m, e);
		if (r < 0)
			return r;
		ret->files[ret->n_own + ret->n_below++] =
			(struct blob_ref){ m.layers[0].digest, m.layers[0].size };
	}
	return 0;
}

/* Reads the configuration, whatever kind it is of. */
static int read_config(int fd, struct layout_image *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	const struct oci_descriptor *c = &ret->manifest.config;
	int r = layout_read_document(fd, &c->digest, c->size, "configuration", &text, &len, e);
	if (r < 0)
		return r;
	r = ret->kind == IMAGE_ACI ? take_appc(ret, text, len, e)
				   : oci_config_parse(text, len, &ret->config, e);
	if (r < 0)
		return r;
	if (ret->manifest.n_layers != ret->config.n_layers)
		return err_set(e, -EBADMSG,
			       "the manifest has %zu layers but the configuration has %zu",
			       ret->manifest.n_layers, ret->config.n_layers);
	return 0;
}

/* The kind of the image whose manifest is read. */
static enum image_kind kind_of(const struct oci_manifest *m)
{
	if (strcmp(m->config.media_type, OCI_TYPE_APPC) == 0)
		return IMAGE_ACI;
	return m->is_rootfs ? IMAGE_ROOTFS : IMAGE_OCI;
}

int layout_read_image(int fd, const struct digest *id, bool is_appc, const struct digest *below,
		      size_t n_below, struct layout_image *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	ret->id = *id;
	int r = layout_read_document(fd, id, UINT64_MAX, "manifest", &text, &len, e);
	if (r == 0)
		r = oci_manifest_parse(text, len, &ret->manifest, e);
	ret->kind = kind_of(&ret->manifest);
	if (r == 0 && is_appc != (ret->kind == IMAGE_ACI))
		r = err_set(e, -EBADMSG, "it is an image of another kind");
	if (r == 0)
		r = read_config(fd, ret, e);
	if (r == 0)
		r = list_files(ret, len, n_below, e);
	if (r == 0)
		r = read_below(fd, below, n_below, ret, e);
	if (r < 0)
		return r;
	name_chain(ret);
	return 0;
}

const struct blob_ref *layout_below(const struct layout_image *i)
{
	return i->files + i->n_own;
}

size_t layout_n_layers(const struct layout_image *i)
{
	return i->n_below + i->manifest.n_layers;
}

bool layout_has_blob(int fd, const struct digest *digest, uint64_t size)
{
	char path[LAYOUT_PATH_LEN];
	struct stat st;
	layout_path_of_blob(digest, path);
	return fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size;
}

bool layout_has_image(int fd, const struct layout_image *i)
{
	bool has = true;
	for (size_t k = 0; has && k < i->n_own + i->n_below; k++)
		has = layout_has_blob(fd, &i->files[k].digest, i->files[k].size);
	return has;
}

void layout_layers_free(struct render_layer *layers, size_t n)
{
	for (size_t i = 0; layers && i < n; i++)
		span_deinit(&layers[i].span);
	free(layers);
}

/* Opens the layer @d for rendering; *ret is to be deinitialised in any case. */
static int open_layer(int fd, enum image_kind kind, const struct blob_ref *d,
		      const struct digest *diff_id, struct render_layer *ret, struct err *e)
{
	static const enum layer_kind kinds[IMAGE_KINDS] = {
		[IMAGE_OCI] = LAYER_OCI,
		[IMAGE_ROOTFS] = LAYER_PLAIN,
		[IMAGE_ACI] = LAYER_ACI,
	};
	int r = open_blob(fd, &d->digest, d->size, e);
	*ret = (struct render_layer){
		.kind = kinds[kind],
		.span = { .fd = r < 0 ? -EBADF : r, .size = d->size },
		.has_blob = true,
		.blob = d->digest,
		.diff_id = *diff_id,
	};
	return r < 0 ? r : 0;
}

int layout_open_layers(int fd, const struct layout_image *i, struct render_layer **ret,
		       struct err *e)
{
	size_t n = layout_n_layers(i);
	struct render_layer *layers = calloc(n, sizeof(*layers));
	if (!layers)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t k = 0; k < n; k++)
		layers[k].span = SPAN_INIT;
	int r = 0;
	const struct blob_ref *below = layout_below(i), *own = below - i->manifest.n_layers;
	for (size_t k = 0; r == 0 && k < i->n_below; k++)
		r = open_layer(fd, i->kind, &below[k], &below[k].digest, &layers[k], e);
	for (size_t k = 0; r == 0 && k < i->manifest.n_layers; k++)
		r = open_layer(fd, i->kind, &own[k], &i->config.diff_ids[k],
			       &layers[i->n_below + k], e);
	if (r < 0) {
		layout_layers_free(layers, n);
		return r;
	}
	*ret = layers;
	return 0;
}

void layout_blobs_free(struct blob_file *blobs, size_t n)
{
	for (size_t i = 0; blobs && i < n; i++)
		fd_close(blobs[i].fd);
	free(blobs);
}

/* Blobs while they are opened. */
struct blob_list {
	struct blob_file *v;
	size_t n;
};

static void blob_list_deinit(struct blob_list *l)
{
	layout_blobs_free(l->v, l->n);
}

static int add_blob(struct blob_list *l, int fd, const struct blob_ref *f, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (digest_equal(&l->v[i].digest, &f->digest))
			return 0;
	int blob = open_blob(fd, &f->digest, f->size, e);
	if (blob >= 0)
		l->v[l->n++] = (struct blob_file){ f->digest, f->size, blob };
	return blob < 0 ? blob : 0;
}

int layout_open_blobs(int fd, const struct layout_image *i, struct blob_file **ret, size_t *ret_n,
		      struct err *e)
{
	CLEANUP(blob_list_deinit) struct blob_list l = { .v = calloc(i->n_own, sizeof(*l.v)) };
	if (!l.v)
		return err_set(e, -ENOMEM, "out of memory");
	int r = 0;
	for (size_t k = 0; r == 0 && k < i->n_own; k++)
		r = add_blob(&l, fd, &i->files[k], e);
	if (r < 0)
		return r;
	*ret_n = l.n;
	*ret = TAKE_PTR(l.v);
	return 0;
}

static void drop_if_damaged(int fd, const struct blob_ref *d)
{
	char path[LAYOUT_PATH_LEN];
	struct digest got;
	CLEANUP(span_deinit)
	struct span span = { .fd = open_blob(fd, &d->digest, d->size, NULL), .size = d->size };
	layout_path_of_blob(&d->digest, path);
	if (span.fd >= 0 && span_digest(&span, &got) == 0 && !digest_equal(&got, &d->digest))
		unlinkat(fd, path, 0); /* if that fails, it is as damaged as before */
}

void layout_drop_damaged(int fd, const struct layout_image *i)
{
	const struct blob_ref *end = layout_below(i) + i->n_below;
	for (const struct blob_ref *f = end - layout_n_layers(i); f < end; f++)
		drop_if_damaged(fd, f);
}
