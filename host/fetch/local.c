/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/fetch/appc.h"
#include "host/fetch/resolve.h"
#include "host/fetch/rootfs.h"
#include "host/fetch/source.h"
#include "host/image/aci.h"
#include "host/image/oci.h"
#include "host/render/stream.h"
#include "host/store/catalog.h"
#include "host/store/import.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

/* One call of local_fetch(). */
struct local {
	struct store *store;
	const struct reference *ref;
	const struct fetch_request *request;
	const struct fetch_options *options;
	const struct local_file *file; /* NULL: what @ref names is the user's own */
	struct ref memo;               /* what the path stands for, with the file's stamp */
	bool unverified;
	struct fetched *ret;
};

/* The path's last component without an archive's suffix, as far as it is printable. */
static void name_of_path(const char *path, char out[IMAGE_NAME_MAX + 1])
{
	static const char *const suffixes[] = { ".gz",  ".zst", ".xz",  ".bz2",
						".tgz", ".tar", ".oci", ".aci" };
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	size_t len = MIN(end - start, IMAGE_NAME_MAX);
	memcpy(out, path + start, len);
	out[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (len > n && str_ends(out, suffixes[i]))
			out[len -= n] = '\0';
	}
	for (char *p = out; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
	if (!*out)
		str_copy(out, IMAGE_NAME_MAX + 1, "image");
}

/*
 * True for a name that only says which of the images of one name it is, as layouts have them:
 * "latest", "12", "v1.0-slim".
 */
static bool is_tag(const char *name)
{
	const char *version = name + (*name == 'v');
	size_t digits = strspn(version, "0123456789.");
	return strcmp(name, "latest") == 0 ||
	       (digits > 0 && *version != '.' && strchr("-_+", version[digits]));
}

/* Calls the image @name; a tag alone is one of what the layout or archive at @path is called. */
static void set_own_name(const struct local *l, const char *name, const char *path)
{
	char whole[PATH_MAX], base[IMAGE_NAME_MAX + 1];
	name_of_path(!l->file && realpath(path, whole) ? whole : path, base);
	int n = 0;
	if (!is_tag(name))
		str_copy(l->ret->name, sizeof(l->ret->name), *name ? name : base);
	else
		n = snprintf(l->ret->name, sizeof(l->ret->name), "%s:%s", base, name);
	if (n < 0 || (size_t)n >= sizeof(l->ret->name))
		str_copy(l->ret->name, sizeof(l->ret->name), base);
}

/*
 * What the image is called: as asked for, else its own @tag, else as its file. What came from elsewhere does not
 * choose its name: that could be another image's.
 */
static void set_name(const struct local *l, const char *tag)
{
	const struct reference *ref = l->ref;
	const char *path = l->file ? l->file->hint : ref->path;
	struct digest digest;
	if (*ref->name && digest_parse(ref->name, &digest) != 0)
		set_own_name(l, ref->name, path);
	else if (l->file && str_is_printable(l->file->hint, IMAGE_NAME_MAX))
		str_copy(l->ret->name, sizeof(l->ret->name), l->file->hint);
	else
		set_own_name(l, tag, path);
}

/* The one text for this path, type and name. */
static int make_key(struct local *l, struct err *e)
{
	static const char *const types[] = {
		[REFERENCE_ANY] = "any",
		[REFERENCE_OCI_DIR] = "oci",
		[REFERENCE_OCI_ARCHIVE] = "oci-archive",
		[REFERENCE_DOCKER_ARCHIVE] = "docker-archive",
		[REFERENCE_ROOTFS] = "rootfs",
	};
	char path[PATH_MAX], text[REF_TEXT_MAX + 1];
	if (!realpath(l->ref->path, path))
		return err_sys(e, -errno, "cannot open");
	snprintf(text, sizeof(text), "file:%s:%s:%s", types[l->ref->type], path, l->ref->name);
	return ref_init(&l->memo, text);
}

/*
 * Takes the stamp of a regular file. True if it is that of the last import, whose image is still there and
 * need not be looked at again; then that is the result.
 */
static bool is_unchanged(struct local *l)
{
	struct stat st;
	struct ref known;
	if (stat(l->ref->path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	cleanup_fd int fd = open(l->ref->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || ref_stamp(fd, clock_realtime_ns(), l->memo.stamp) < 0 || !*l->memo.stamp)
		return false;
	if (catalog_get_ref(l->store, l->memo.text, &known) != 0 ||
	    strcmp(known.stamp, l->memo.stamp) != 0 || !catalog_has_image(l->store, &known.image) ||
	    (known.unverified && !l->options->insecure_image) || l->request->signature)
		return false;
	l->ret->id = known.image;
	str_copy(l->ret->name, sizeof(l->ret->name), known.name);
	return true;
}

/* The image that stands for a docker archive's configuration. */
static void config_key(const struct digest *config, char out[96])
{
	snprintf(out, 96, "docker-config:sha256:%s", config->hex);
}

/* True if the store has the image that was resolved; then that is the result. */
static bool is_known(struct local *l, const struct resolved *image)
{
	struct digest id = image->id;
	struct ref known;
	char key[96];
	config_key(&image->id, key);
	if (!image->manifest_text) {
		if (catalog_get_ref(l->store, key, &known) != 0)
			return false;
		id = known.image;
	}
	if (!catalog_has_image(l->store, &id))
		return false;
	l->ret->id = id;
	return true;
}

/* Copies the layer @n of @image; @d gets digest, size and media type. */
static int copy_layer(const struct local *l, struct import *im, const struct resolved *image,
		      size_t n, struct oci_descriptor *d, struct err *e)
{
	const struct render_layer *layer = &image->layers[n];
	const struct digest *want = layer->has_blob ? &layer->blob : NULL;
	unsigned char magic[STREAM_MAGIC_LEN] = { 0 };
	char what[64];
	struct fetch_meter meter;
	const struct import_progress progress = { fetch_meter_tell, &meter };
	snprintf(what, sizeof(what), "layer %zu of %zu", n + 1, image->n_layers);
	d->size = layer->span.size;
	if (want && import_reuse(im, want, d->size) == 0) {
		d->digest = *want;
		return 0;
	}
	int r = span_read(&layer->span, magic, MIN(sizeof(magic), (size_t)d->size), 0);
	if (r < 0)
		return err_sys(e, r, "cannot read %s", what);
	enum stream_compression c = stream_detect(magic);
	str_copy(d->media_type, sizeof(d->media_type),
		 c == STREAM_GZIP   ? OCI_TYPE_LAYER_GZIP
		 : c == STREAM_ZSTD ? OCI_TYPE_LAYER_ZSTD
				    : OCI_TYPE_LAYER);
	fetch_meter_begin(&meter, l->options, what, d->size);
	r = import_copy(im, &layer->span, want, &progress, &d->digest, e);
	if (r < 0)
		return err_context(e, "%s", what);
	fetch_meter_end(&meter);
	return 0;
}

static int copy_layers(const struct local *l, struct import *im, const struct resolved *image,
		       struct oci_manifest *m, struct err *e)
{
	m->layers = calloc(image->n_layers, sizeof(*m->layers));
	if (!m->layers)
		return err_set(e, -ENOMEM, "out of memory");
	m->n_layers = image->n_layers;
	for (size_t i = 0; i < image->n_layers; i++) {
		int r = copy_layer(l, im, image, i, &m->layers[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int publish(struct import *im, struct fetched *f, struct err *e)
{
	const struct import_image image = { .id = f->id, .name = f->name };
	return import_publish(im, &image, &f->rendered, e);
}

/* Copies everything into the import. */
static int fill_import(struct local *l, struct import *im, const struct resolved *image,
		       struct err *e)
{
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	int r = copy_layers(l, im, image, &m, e);
	str_copy(m.config.media_type, sizeof(m.config.media_type), OCI_TYPE_CONFIG);
	m.config.size = image->config_len;
	if (r == 0)
		r = import_text(im, image->config_text, image->config_len, &m.config.digest, e);
	if (r < 0)
		return r;
	return image->manifest_text
		       ? import_text(im, image->manifest_text, image->manifest_len, &l->ret->id, e)
		       : import_manifest(im, &m, &l->ret->id, e);
}

/* Runs @fn with the import that we were given, or one of our own. */
static int with_import(struct local *l,
		       int (*fn)(struct local *l, struct import *im, void *arg, struct err *e),
		       void *arg, struct err *e)
{
	cleanup_import struct import *own = NULL;
	if (l->file)
		return fn(l, l->file->import, arg, e);
	int r = import_begin(l->store, l->memo.text, &own, e);
	return r < 0 ? r : fn(l, own, arg, e);
}

/* Remembers the image of a docker archive's configuration. */
static void remember_config(const struct local *l, const struct resolved *image)
{
	char key[96];
	struct ref config;
	config_key(&image->id, key);
	if (image->manifest_text || ref_init(&config, key) < 0)
		return;
	config.image = l->ret->id;
	catalog_put_ref(l->store, &config);
}

static int import_image(struct local *l, struct import *im, void *arg, struct err *e)
{
	const struct resolved *image = arg;
	if (is_known(l, image)) /* somebody else did it meanwhile */
		return catalog_add_name(l->store, &l->ret->id, l->ret->name, e);
	int r = fill_import(l, im, image, e);
	if (r == 0)
		r = publish(im, l->ret, e);
	if (r == 0)
		remember_config(l,
				image); /* while we have the lock: who waits for it looks there */
	return r;
}

static void cleanup_source(struct source **s)
{
	source_free(*s);
}

/* The signature of a file of this machine: where the user says, else beside it. */
static int open_signature(void *ctx, struct err *e)
{
	const struct local *l = ctx;
	char beside[PATH_MAX + sizeof(".asc")];
	const char *path = l->request->signature;
	if (!path) {
		snprintf(beside, sizeof(beside), "%s.asc", l->ref->path);
		path = beside;
	}
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return err_sys(e, -errno,
		       "error opening signature file \"%s\" (give another with --signature, or "
		       "do without: --insecure-options=image)",
		       path);
}

/* An appc image. */
static int import_aci(struct local *l, struct import *im, void *arg, struct err *e)
{
	const struct source *source = arg;
	cleanup_free char *manifest = NULL;
	struct appc_archive a = { .tar = source_tar(source), .file = source_file(source) };
	int r = source_read(source, "manifest", ACI_JSON_MAX, &manifest, &a.manifest_len, e);
	if (r < 0)
		return r;
	a.manifest = manifest;
	a.signature = l->file ? l->file->signature : open_signature;
	a.ctx = l->file ? l->file->ctx : l;
	l->unverified = l->options->insecure_image;
	return appc_import(l->store, im, &a, l->request, l->ret, e);
}

/* What came over the network as anybody likes, and has no signature. */
static int check_way(struct local *l, struct err *e)
{
	if (!l->file || !l->file->tampered)
		return 0;
	l->unverified = l->options->insecure_image;
	if (l->unverified)
		return 0;
	return err_set(e, -EKEYREJECTED,
		       "it has no signature, and came without TLS, so anybody may have changed it "
		       "(use https, or --insecure-options=image)");
}

/* What is called an appc image is expected to be signed, and must not do without by being something else. */
static int check_suffix(struct local *l, struct err *e)
{
	if (!str_ends(l->file ? l->file->hint : l->ref->path, ".aci"))
		return 0;
	l->unverified |= l->options->insecure_image;
	if (l->options->insecure_image)
		return 0;
	return err_set(e, -EKEYREJECTED,
		       "it is called .aci, but it is another kind of image, which has no signature "
		       "(give it another name, or --insecure-options=image)");
}

static int import_resolved(struct local *l, const struct source *source, struct err *e)
{
	CLEANUP(resolved_deinit) struct resolved image;
	resolved_init(&image);
	int r = check_way(l, e);
	if (r == 0)
		r = check_suffix(l, e);
	if (r == 0)
		r = resolve_image(source, l->ref->name, &image, e);
	if (r < 0)
		return r;
	set_name(l, image.tag);
	r = is_known(l, &image) ? catalog_add_name(l->store, &l->ret->id, l->ret->name, e)
				: with_import(l, import_image, &image, e);
	return r;
}

/* What is not an appc image has no signature, so it cannot stand in for one that has. */
static int check_kind(const struct local *l, struct err *e)
{
	if (l->request->expected)
		return err_set(e, -EBADMSG, "it is not an appc image, but \"%s\" is one",
			       l->request->expected->name);
	if (l->request->signature)
		return err_set(
			e, -EINVAL,
			"it is not an appc image, so there is nothing that the signature \"%s\" "
			"could be of (leave --signature away)",
			l->request->signature);
	return 0;
}

static int open_source(const struct local *l, const struct reference *ref, struct source **ret,
		       struct err *e)
{
	return source_open(ref, store_tmp_dirfd(l->store), store_bytes_max(l->store), ret, e);
}

/* True if somebody else can write to the file while we work on it. */
static bool is_shared(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0) ||
	       (st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * What is imported must be what was signed, but the file is decompressed, checked and copied one after the
 * other. So one that others can change meanwhile is replaced by a copy of our own.
 */
static int make_private(const struct local *l, struct source **source, struct err *e)
{
	struct reference ref = *l->ref;
	struct stat st;
	int file = source_file(*source);
	if (l->file || l->options->insecure_image || !is_shared(file))
		return 0;
	if (fstat(file, &st) == 0 && (uint64_t)st.st_size > store_bytes_max(l->store))
		return err_set(e, -EFBIG, "it has %lld bytes, more than the %llu allowed",
			       (long long)st.st_size,
			       (unsigned long long)store_bytes_max(l->store));
	cleanup_fd int copy =
		openat(store_tmp_dirfd(l->store), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r = copy < 0 ? -errno : file_copy_sparse(file, copy);
	if (r < 0)
		return err_sys(e, r, "cannot copy it to %s/tmp", store_path(l->store));
	snprintf(ref.path, sizeof(ref.path), "/proc/self/fd/%d", copy);
	source_free(TAKE_PTR(*source));
	r = open_source(l, &ref, source, e);
	if (r == 0 && source_type(*source) != SOURCE_ACI)
		r = err_set(e, -EBADMSG, "it changed while it was read (try again)");
	return r;
}

/* A layout or an archive. */
static int fetch_source(struct local *l, struct err *e)
{
	CLEANUP(cleanup_source) struct source *source = NULL;
	int r = open_source(l, l->ref, &source, e);
	if (r == 0)
		r = source_type(source) == SOURCE_ACI ? make_private(l, &source, e)
						      : check_kind(l, e);
	if (r < 0)
		return r;
	return source_type(source) == SOURCE_ACI ? with_import(l, import_aci, source, e)
						 : import_resolved(l, source, e);
}

static int import_rootfs(struct local *l, struct import *im, void *arg, struct err *e)
{
	(void)arg;
	int r = rootfs_import(im, l->ref->path, store_bytes_max(l->store), l->options, &l->ret->id,
			      e);
	if (r < 0)
		return r;
	return catalog_has_image(l->store, &l->ret->id)
		       ? catalog_add_name(l->store, &l->ret->id, l->ret->name, e)
		       : publish(im, l->ret, e);
}

int local_import(struct store *s, const struct reference *ref, const struct local_file *f,
		 const struct fetch_request *q, struct fetched *ret, bool *ret_unverified,
		 struct err *e)
{
	struct local l = {
		.store = s,
		.ref = ref,
		.request = q,
		.options = &q->options,
		.file = f,
		.ret = ret,
	};
	int r = fetch_source(&l, e);
	if (r == 0)
		*ret_unverified = l.unverified;
	return r;
}

int local_fetch(struct store *s, const struct reference *ref, const struct fetch_request *q,
		struct fetched *ret, struct err *e)
{
	struct local l = {
		.store = s,
		.ref = ref,
		.request = q,
		.options = &q->options,
		.ret = ret,
	};
	int r = make_key(&l, e);
	if (r < 0)
		return r;
	fetch_note(l.options, "using image from file %s", ref->path);
	if (is_unchanged(&l)) {
		fetch_note(l.options, "%s has not changed since it was imported", ref->path);
		return 0;
	}
	if (ref->type == REFERENCE_ROOTFS)
		set_name(&l, "");
	if (ref->type == REFERENCE_ROOTFS)
		r = check_kind(&l, e);
	if (r == 0)
		r = ref->type == REFERENCE_ROOTFS ? with_import(&l, import_rootfs, NULL, e)
						  : fetch_source(&l, e);
	if (r < 0)
		return r;
	l.memo.image = ret->id;
	str_copy(l.memo.name, sizeof(l.memo.name), ret->name);
	l.memo.unverified = l.unverified;
	catalog_put_ref(s, &l.memo); /* saves work only */
	return 0;
}
