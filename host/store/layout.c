#include "host/store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"

#define DIR_MODE  02770 /* less the umask; the group is the directory's above */
#define FILE_MODE 0440

static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}\n";

/* "blobs/sha256/HEX" */
#define BLOB_PATH_LEN (sizeof(LAYOUT_BLOBS) + 1 + DIGEST_HEX_LEN)

static void blob_path(const struct digest *d, char out[BLOB_PATH_LEN])
{
	snprintf(out, BLOB_PATH_LEN, LAYOUT_BLOBS "/%s", d->hex);
}

void layout_image_init(struct layout_image *i)
{
	*i = (struct layout_image){ 0 };
	oci_config_init(&i->config);
}

void layout_image_deinit(struct layout_image *i)
{
	if (!i)
		return;
	oci_manifest_deinit(&i->manifest);
	oci_config_deinit(&i->config);
	layout_image_init(i);
}

int layout_make(int fd)
{
	static const char *const dirs[] = { "blobs", LAYOUT_BLOBS };
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(fd, dirs[i], DIR_MODE) < 0 && errno != EEXIST)
			return -errno;
	if (faccessat(fd, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return file_write_at(fd, "oci-layout", layout_text, sizeof(layout_text) - 1, FILE_MODE);
}

/* Opens a blob, which must be a file of @size bytes. The descriptor, or -errno with @e. */
static int open_blob(int fd, const struct digest *digest, uint64_t size, struct err *e)
{
	char path[BLOB_PATH_LEN];
	struct stat st;
	blob_path(digest, path);
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

/* Reads a JSON blob and verifies its digest; @size is UINT64_MAX if it is not known. */
static int read_document(int fd, const struct digest *digest, uint64_t size, const char *what,
			 char **ret, size_t *ret_len, struct err *e)
{
	char path[BLOB_PATH_LEN];
	struct digest got;
	blob_path(digest, path);
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

/*
 * The name of what rendering gives. The layers of a root file system have another meaning than those of
 * an OCI image, so equal bytes must not give equal names.
 */
static void name_chain(struct layout_image *i)
{
	char text[sizeof("rootfs sha256:") + DIGEST_HEX_LEN];
	digest_chain(i->config.diff_ids, i->config.n_layers, &i->chain);
	if (i->kind == IMAGE_OCI)
		return;
	snprintf(text, sizeof(text), "rootfs sha256:%s", i->chain.hex);
	digest_of(text, strlen(text), &i->chain);
}

static void add_sizes(struct layout_image *i, size_t manifest_len)
{
	i->size = manifest_len + i->manifest.config.size;
	for (size_t k = 0; k < i->manifest.n_layers; k++)
		i->size += i->manifest.layers[k].size;
}

int layout_read_image(int fd, const struct digest *id, enum image_kind kind,
		      struct layout_image *ret, struct err *e)
{
	cleanup_free char *manifest = NULL;
	cleanup_free char *config = NULL;
	size_t manifest_len = 0, config_len = 0;
	ret->id = *id;
	ret->kind = kind;
	int r = read_document(fd, id, UINT64_MAX, "manifest", &manifest, &manifest_len, e);
	if (r == 0)
		r = oci_manifest_parse(manifest, manifest_len, &ret->manifest, e);
	if (r < 0)
		return r;
	const struct oci_descriptor *c = &ret->manifest.config;
	r = read_document(fd, &c->digest, c->size, "configuration", &config, &config_len, e);
	if (r == 0)
		r = oci_config_parse(config, config_len, &ret->config, e);
	if (r < 0)
		return r;
	if (ret->manifest.n_layers != ret->config.n_layers)
		return err_set(e, -EBADMSG,
			       "the manifest has %zu layers but the configuration has %zu",
			       ret->manifest.n_layers, ret->config.n_layers);
	name_chain(ret);
	add_sizes(ret, manifest_len);
	return 0;
}

bool layout_has_blob(int fd, const struct digest *digest, uint64_t size)
{
	char path[BLOB_PATH_LEN];
	struct stat st;
	blob_path(digest, path);
	return fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size;
}

bool layout_has_image(int fd, const struct layout_image *i)
{
	const struct oci_descriptor *c = &i->manifest.config;
	bool has = layout_has_blob(fd, &c->digest, c->size);
	for (size_t k = 0; has && k < i->manifest.n_layers; k++)
		has = layout_has_blob(fd, &i->manifest.layers[k].digest,
				      i->manifest.layers[k].size);
	return has;
}

void layout_layers_free(struct render_layer *layers, size_t n)
{
	for (size_t i = 0; layers && i < n; i++)
		span_deinit(&layers[i].span);
	free(layers);
}

int layout_open_layers(int fd, const struct layout_image *i, struct render_layer **ret,
		       struct err *e)
{
	size_t n = i->manifest.n_layers;
	struct render_layer *layers = calloc(n, sizeof(*layers));
	if (!layers)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t k = 0; k < n; k++)
		layers[k].span = SPAN_INIT;
	int r = 0;
	for (size_t k = 0; r >= 0 && k < n; k++) {
		const struct oci_descriptor *d = &i->manifest.layers[k];
		r = open_blob(fd, &d->digest, d->size, e);
		layers[k].span.fd = r < 0 ? -EBADF : r;
		layers[k].span.size = d->size;
		layers[k].kind = i->kind == IMAGE_OCI ? LAYER_OCI : LAYER_PLAIN;
		layers[k].has_blob = true;
		layers[k].blob = d->digest;
		layers[k].diff_id = i->config.diff_ids[k];
	}
	if (r < 0) {
		layout_layers_free(layers, n);
		return r;
	}
	*ret = layers;
	return 0;
}
