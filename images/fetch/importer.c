/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/appc.h"
#include "images/fetch/rootfs.h"
#include "images/fetch/source.h"
#include "images/known/local.h"
#include "images/render/stream.h"
#include "images/spec/oci.h"
#include "images/store/catalog.h"
#include "lib/base/hex.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

void importer_deinit(struct importer *i)
{
	source_free(i->source);
	resolved_deinit(&i->image);
	aci_manifest_deinit(&i->aci);
	free(i->manifest);
	*i = (struct importer){ .store = NULL };
}

/* The path's last component without an archive's suffix, as far as it can be shown. */
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
	char base[IMAGE_NAME_MAX + 1];
	size_t len = MIN(end - start, IMAGE_NAME_MAX);
	memcpy(base, path + start, len);
	base[len] = '\0';
	str_copy_printable(out, IMAGE_NAME_MAX + 1, base);
	len = strlen(out);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (len > n && str_ends(out, suffixes[i]))
			out[len -= n] = '\0';
	}
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
static void set_own_name(struct found *f, const char *name, const char *path)
{
	struct fetched *image = &f->image;
	char whole[PATH_MAX], base[IMAGE_NAME_MAX + 1];
	name_of_path(!f->hint && realpath(path, whole) ? whole : path, base);
	int n = 0;
	if (!is_tag(name))
		str_copy(image->name, sizeof(image->name), *name ? name : base);
	else
		n = snprintf(image->name, sizeof(image->name), "%s:%s", base, name);
	if (n < 0 || (size_t)n >= sizeof(image->name))
		str_copy(image->name, sizeof(image->name), base);
}

/*
 * What the image is called: as asked for, else its own @tag, else as its file. What came from
 * elsewhere does not choose its name: that could be another image's.
 */
static void set_name(struct found *f, const char *tag)
{
	const char *asked = f->file.name, *path = f->hint ? f->hint : f->file.path;
	struct digest digest;
	if (*asked && digest_parse(asked, &digest) != 0)
		set_own_name(f, asked, path);
	else if (f->hint && str_is_printable(f->hint, IMAGE_NAME_MAX))
		str_copy(f->image.name, sizeof(f->image.name), f->hint);
	else
		set_own_name(f, tag, path);
}

/* What came over the network as anybody likes, and has no signature. */
static int check_way(const struct importer *i, struct err *e)
{
	if (!i->found->tampered || i->request->options.insecure_image)
		return 0;
	return err_set(e, -EKEYREJECTED,
		       "it has no signature, and came without TLS, so anybody may have changed it "
		       "(use https, or --insecure-options=image)");
}

/* True for what is called an appc image: it is expected to be signed. */
static bool is_called_appc(const struct found *f)
{
	return str_ends(f->hint ? f->hint : f->file.path, ".aci");
}

/* It must not do without a signature by being something else. */
static int check_suffix(const struct importer *i, struct err *e)
{
	if (!is_called_appc(i->found) || i->request->options.insecure_image)
		return 0;
	return err_set(e, -EKEYREJECTED,
		       "it is called .aci, but it is another kind of image, which has no signature "
		       "(give it another name, or --insecure-options=image)");
}

/* What is not an appc image has no signature, so it cannot stand in for one that has. */
static int check_kind(const struct importer *i, struct err *e)
{
	const struct fetch_request *q = i->request;
	if (q->expected)
		return err_set(e, -EBADMSG, "it is not an appc image, but \"%s\" is one",
			       q->expected->name);
	if (q->signature)
		return err_set(
			e, -EINVAL,
			"it is not an appc image, so there is nothing that the signature \"%s\" "
			"could be of (leave --signature away)",
			q->signature);
	return 0;
}

/* True if the image would have been refused without the option that lets everything pass. */
static bool is_unverified(const struct importer *i)
{
	const struct found *f = i->found;
	bool is_appc = i->source && source_type(i->source) == SOURCE_ACI;
	if (!is_appc && f->exposed) /* nothing but TLS could vouch for it */
		return true;
	bool refused = is_appc || (i->source && (f->tampered || is_called_appc(f)));
	return refused && i->request->options.insecure_image;
}

static int open_source(const struct importer *i, const struct reference *ref, struct source **ret,
		       struct err *e)
{
	return source_open(ref, store_tmp_dirfd(i->store), store_bytes_max(i->store), ret, e);
}

/* True if somebody else can write to the file while we work on it. */
static bool is_shared(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0) ||
	       (st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * What is imported must be what was signed, but the file is decompressed, checked and copied one
 * after the other. So one that others can change meanwhile is replaced by a copy of our own.
 */
static int make_private(struct importer *i, struct err *e)
{
	struct reference ref = i->found->file;
	struct stat st;
	int file = source_file(i->source);
	if (i->found->hint || i->request->options.insecure_image || !is_shared(file))
		return 0;
	if (fstat(file, &st) == 0 && (uint64_t)st.st_size > store_bytes_max(i->store))
		return err_set(e, -EFBIG, "it has %lld bytes, more than the %llu allowed",
			       (long long)st.st_size,
			       (unsigned long long)store_bytes_max(i->store));
	cleanup_fd int copy =
		openat(store_tmp_dirfd(i->store), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r = copy < 0 ? -errno : file_copy_sparse(file, copy);
	if (r < 0)
		return err_sys(e, r, "cannot copy it to %s/tmp", store_path(i->store));
	snprintf(ref.path, sizeof(ref.path), "/proc/self/fd/%d", copy);
	source_free(TAKE_PTR(i->source));
	r = open_source(i, &ref, &i->source, e);
	if (r == 0 && source_type(i->source) != SOURCE_ACI)
		r = err_set(e, -EBADMSG, "it changed while it was read (try again)");
	return r;
}

/* An appc image: what it says of itself, and who says so. */
static int open_appc(struct importer *i, struct err *e)
{
	int r = make_private(i, e);
	if (r == 0)
		r = source_read(i->source, "manifest", ACI_JSON_MAX, &i->manifest, &i->manifest_len,
				e);
	if (r == 0)
		r = aci_manifest_parse(i->manifest, i->manifest_len, &i->aci, e);
	if (r < 0)
		return r;
	char tmp[PATH_MAX + sizeof("/tmp")];
	const struct found *f = i->found;
	const struct appc_image image = {
		.manifest = &i->aci,
		.file = source_file(i->source),
		.path = f->file.path,
		.signature = f->signature,
		.ctx = f->ctx,
	};
	snprintf(tmp, sizeof(tmp), "%s/tmp", store_path(i->store));
	appc_name(&i->aci, i->found->image.name);
	return appc_check(&image, i->request, tmp, e);
}

static int open_image(struct importer *i, struct err *e)
{
	int r = check_kind(i, e);
	if (r == 0)
		r = check_way(i, e);
	if (r == 0)
		r = check_suffix(i, e);
	if (r == 0)
		r = resolve_image(i->source, i->found->file.name, &i->image, e);
	if (r == 0)
		set_name(i->found, i->image.tag);
	return r;
}

int importer_open(struct importer *ret, struct store *s, struct found *f,
		  const struct fetch_request *q, struct err *e)
{
	*ret = (struct importer){ .store = s, .found = f, .request = q };
	resolved_init(&ret->image);
	aci_manifest_init(&ret->aci);
	if (f->where != FOUND_FILE)
		return 0;
	if (f->file.type == REFERENCE_ROOTFS) {
		set_name(f, "");
		return check_kind(ret, e);
	}
	int r = open_source(ret, &f->file, &ret->source, e);
	if (r < 0)
		return r;
	return source_type(ret->source) == SOURCE_ACI ? open_appc(ret, e) : open_image(ret, e);
}

/* The image that stands for a docker archive's configuration. */
static void config_key(const struct digest *config, char out[96])
{
	snprintf(out, 96, "docker-config:sha256:%s", config->hex);
}

/* True if the store has the image that was resolved; then that is the result. */
static bool is_known(struct importer *i)
{
	const struct resolved *image = &i->image;
	struct digest id = image->id;
	struct ref known;
	char key[96];
	config_key(&image->id, key);
	if (!image->manifest_text) {
		if (catalog_get_ref(i->store, key, &known) != 0)
			return false;
		id = known.image;
	}
	if (!catalog_has_image(i->store, &id))
		return false;
	i->found->image.id = id;
	return true;
}

/* Copies the layer @n; @d gets digest, size and media type. */
static int copy_layer(const struct importer *i, size_t n, struct oci_descriptor *d, struct err *e)
{
	const struct resolved *image = &i->image;
	struct import *im = i->found->import;
	const struct render_layer *layer = &image->layers[n];
	const struct digest *want = layer->has_blob ? &layer->blob : NULL;
	enum stream_compression c = STREAM_PLAIN;
	char what[64];
	struct fetch_meter meter;
	const struct import_watch watch = { fetch_meter_add, &meter };
	snprintf(what, sizeof(what), "layer %zu of %zu", n + 1, image->n_layers);
	d->size = layer->span.size;
	if (want && import_reuse(im, want, d->size) == 0) {
		d->digest = *want;
		return 0;
	}
	int r = stream_detect_span(&layer->span, &c);
	if (r < 0)
		return err_sys(e, r, "cannot read %s", what);
	str_copy(d->media_type, sizeof(d->media_type),
		 c == STREAM_GZIP   ? OCI_TYPE_LAYER_GZIP
		 : c == STREAM_ZSTD ? OCI_TYPE_LAYER_ZSTD
				    : OCI_TYPE_LAYER);
	fetch_meter_begin(&meter, &i->request->options, what, d->size);
	r = import_copy(im, &layer->span, want, &watch, &d->digest, e);
	if (r < 0)
		return err_context(e, "%s", what);
	fetch_meter_end(&meter);
	return 0;
}

static int copy_layers(const struct importer *i, struct oci_manifest *m, struct err *e)
{
	const struct resolved *image = &i->image;
	m->layers = calloc(image->n_layers, sizeof(*m->layers));
	if (!m->layers)
		return err_set(e, -ENOMEM, "out of memory");
	m->n_layers = image->n_layers;
	for (size_t n = 0; n < image->n_layers; n++) {
		int r = copy_layer(i, n, &m->layers[n], e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Copies everything into the import. */
static int fill_import(struct importer *i, struct err *e)
{
	const struct resolved *image = &i->image;
	struct import *im = i->found->import;
	struct digest *id = &i->found->image.id;
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	int r = copy_layers(i, &m, e);
	str_copy(m.config.media_type, sizeof(m.config.media_type), OCI_TYPE_CONFIG);
	m.config.size = image->config_len;
	if (r == 0)
		r = import_text(im, image->config_text, image->config_len, &m.config.digest, e);
	if (r < 0)
		return r;
	return image->manifest_text
		       ? import_text(im, image->manifest_text, image->manifest_len, id, e)
		       : import_manifest(im, &m, id, e);
}

/* Remembers the image of a docker archive's configuration. */
static void remember_config(const struct importer *i)
{
	char key[96];
	struct ref config;
	config_key(&i->image.id, key);
	if (i->image.manifest_text || ref_init(&config, key) < 0)
		return;
	config.image = i->found->image.id;
	catalog_put_ref(i->store, &config);
}

static int add_name(const struct importer *i, struct err *e)
{
	const struct fetched *image = &i->found->image;
	return catalog_add_name(i->store, &image->id, image->name, e);
}

/* Puts into the store what the import has all blobs of. */
static int importer_put(struct importer *i, struct err *e)
{
	struct fetched *f = &i->found->image;
	const struct import_image image = { .id = f->id, .name = f->name };
	return catalog_has_image(i->store, &f->id)
		       ? add_name(i, e)
		       : import_publish(i->found->import, &image, &f->rendered, e);
}

static int import_image(struct importer *i, struct err *e)
{
	if (is_known(i)) /* perhaps somebody else did it meanwhile */
		return add_name(i, e);
	int r = fill_import(i, e);
	if (r == 0)
		r = importer_put(i, e);
	if (r == 0)
		remember_config(i); /* while we have the lock: who waits for it looks there */
	return r;
}

/*
 * A tree that somebody else has packed while we waited for the lock is not read. One that is, and
 * says another thing of itself after that, was changed meanwhile: then nothing is noted.
 */
static int import_rootfs(struct importer *i, struct err *e)
{
	struct found *f = i->found;
	char identity[REF_STAMP_MAX + 1];
	if (i->request->identify && *f->memo.stamp && local_is_known(i->store, i->request, f))
		return 0;
	int r = rootfs_import(i->found->import, i->found->file.path, store_bytes_max(i->store),
			      &i->request->options, &i->found->image.id, e);
	if (r == 0 && i->request->identify &&
	    !(local_identify(i->store, i->request, identity) &&
	      strcmp(identity, f->memo.stamp) == 0))
		f->memo.stamp[0] = '\0';
	return r < 0 ? r : importer_put(i, e);
}

/* The tar of an appc image while it is copied. */
struct appc_copy {
	struct fetch_meter meter;
	struct sha512_ctx key; /* which is the SHA-512 of the tar */
};

static void watch_appc(void *ctx, const void *data, size_t len)
{
	struct appc_copy *c = ctx;
	sha512_update(&c->key, len, data);
	fetch_meter_add(&c->meter, data, len);
}

/* Makes blobs of the tar, as the layer, the manifest, as the configuration, and of both. */
static int fill_appc(struct importer *i, char ret_key[ACI_KEY_LEN + 1], struct err *e)
{
	const struct span tar = source_tar(i->source);
	struct import *im = i->found->import;
	struct appc_copy c;
	const struct import_watch watch = { watch_appc, &c };
	unsigned char key[SHA512_DIGEST_SIZE];
	struct oci_descriptor layer = { .media_type = OCI_TYPE_ACI, .size = tar.size };
	struct oci_manifest m = { .layers = &layer, .n_layers = 1 };
	m.config = (struct oci_descriptor){ .media_type = OCI_TYPE_APPC, .size = i->manifest_len };
	sha512_init(&c.key);
	fetch_meter_begin(&c.meter, &i->request->options, i->found->image.name, tar.size);
	int r = import_copy(im, &tar, NULL, &watch, &layer.digest, e);
	if (r == 0)
		r = import_text(im, i->manifest, i->manifest_len, &m.config.digest, e);
	if (r < 0)
		return r;
	fetch_meter_end(&c.meter);
	sha512_digest(&c.key, sizeof(key), key);
	hex_encode(key, sizeof(key), ret_key);
	return import_manifest(im, &m, &i->found->image.id, e);
}

static int import_appc(struct importer *i, const struct digest *below, size_t n_below,
		       struct err *e)
{
	struct fetched *f = &i->found->image;
	char key[ACI_KEY_LEN + 1];
	int r = fill_appc(i, key, e);
	const struct import_image image = {
		.id = f->id,
		.is_appc = true,
		.name = f->name,
		.key = key,
		.below = below,
		.n_below = n_below,
		.unverified = i->request->options.insecure_image,
	};
	return r < 0 ? r : import_publish(i->found->import, &image, &f->rendered, e);
}

static int import_file(struct importer *i, const struct digest *below, size_t n_below,
		       struct err *e)
{
	struct found *f = i->found;
	f->memo.unverified = is_unverified(i);
	if (i->source && source_type(i->source) != SOURCE_ACI && is_known(i))
		return add_name(i, e);
	int r = f->import ? 0 : import_begin(i->store, f->memo.text, &f->import, e);
	if (r < 0)
		return r;
	if (!i->source)
		return import_rootfs(i, e);
	return source_type(i->source) == SOURCE_ACI ? import_appc(i, below, n_below, e)
						    : import_image(i, e);
}

/* Notes what was asked for, while we have the lock of it: who waits for that looks there. */
static int note(struct importer *i, struct err *e)
{
	struct found *f = i->found;
	f->memo.image = f->image.id;
	if (f->where == FOUND_FILE)
		str_copy(f->memo.name, sizeof(f->memo.name), f->image.name);
	if (f->where == FOUND_FILE && !f->hint) {
		if (*f->memo.stamp) /* else it is read again whatever is known */
			catalog_put_ref(i->store, &f->memo); /* saves work only */
		return 0;
	}
	f->memo.fetched_ns = clock_realtime_ns();
	return catalog_refer(i->store, &f->memo, e);
}

int importer_finish(struct importer *i, const struct digest *below, size_t n_below, struct err *e)
{
	int r = 0;
	switch (i->found->where) {
	case FOUND_NOWHERE:
	case FOUND_KNOWN:
		return 0;
	case FOUND_CURRENT:
		break;
	case FOUND_STORED:
		r = add_name(i, e);
		break;
	case FOUND_BLOBS:
		r = importer_put(i, e);
		break;
	case FOUND_FILE:
		r = import_file(i, below, n_below, e);
		break;
	}
	return r != 0 ? r : note(i, e);
}
