/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/fetch/layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/fetch/resolve.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

#define JSON_MAX ((size_t)1 << 20)

/* A file of an image before it is put anywhere. */
static void make_layer(const struct layout_image *image, size_t i, struct layout_written *ret,
		       struct blob *out)
{
	struct blob tar = { NULL, 0 };
	layers_make(image->layers[i], "pax", &tar);
	digest_of(tar.data, tar.len, &ret->diff_ids[i]);
	if (image->filter)
		layers_compress(&tar, image->filter, out);
	else
		*out = (struct blob){ TAKE_PTR(tar.data), tar.len };
	digest_of(out->data, out->len, &ret->layers[i]);
	blob_deinit(&tar);
}

static void make_config(const struct layout_image *image, struct layout_written *ret,
			struct buf *out)
{
	buf_init(out, JSON_MAX);
	buf_printf(out, "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{%s},\"rootfs\":{",
		   image->architecture ? image->architecture : oci_host_platform.architecture,
		   image->config ? image->config : "");
	buf_puts(out, "\"type\":\"layers\",\"diff_ids\":[");
	for (size_t i = 0; i < ret->n_layers; i++)
		buf_printf(out, "%s\"sha256:%s\"", i > 0 ? "," : "", ret->diff_ids[i].hex);
	assert_int_equal(buf_puts(out, "]}}"), 0);
	digest_of(buf_data(out), buf_len(out), &ret->config);
}

static size_t count_layers(const struct layout_image *image)
{
	size_t n = 0;
	while (n < LAYOUT_LAYERS_MAX && image->layers[n])
		n++;
	return n;
}

char *layout_blob_path(void **state, const char *name, const struct digest *digest)
{
	char *path;
	assert_true(asprintf(&path, "%s/%s/blobs/sha256/%s", fixture_path(state), name,
			     digest->hex) > 0);
	return path;
}

static void write_file(const char *path, const void *data, size_t len)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
}

static void write_blob(void **state, const char *name, const void *data, size_t len)
{
	struct digest digest;
	digest_of(data, len, &digest);
	cleanup_free char *path = layout_blob_path(state, name, &digest);
	write_file(path, data, len);
}

static void write_text(void **state, const char *name, const char *file, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s/%s", fixture_path(state), name, file);
	write_file(path, text, strlen(text));
}

static void make_dir(void **state, const char *name, const char *below)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s%s", fixture_path(state), name, below);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* Writes layers, configuration and manifest; appends the entry for the index. */
static void write_image(void **state, const char *name, const struct layout_image *image,
			struct layout_written *ret, struct buf *index)
{
	struct buf manifest, config;
	size_t sizes[LAYOUT_LAYERS_MAX] = { 0 };
	ret->n_layers = count_layers(image);
	for (size_t i = 0; i < ret->n_layers; i++) {
		struct blob blob = { NULL, 0 };
		make_layer(image, i, ret, &blob);
		write_blob(state, name, blob.data, blob.len);
		sizes[i] = blob.len;
		blob_deinit(&blob);
	}
	make_config(image, ret, &config);
	write_blob(state, name, buf_data(&config), buf_len(&config));
	buf_init(&manifest, JSON_MAX);
	buf_printf(&manifest,
		   "{\"schemaVersion\":2,\"config\":{\"mediaType\":"
		   "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:%s\","
		   "\"size\":%zu},\"layers\":[",
		   ret->config.hex, buf_len(&config));
	for (size_t i = 0; i < ret->n_layers; i++)
		buf_printf(&manifest,
			   "%s{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar%s%s\","
			   "\"digest\":\"sha256:%s\",\"size\":%zu}",
			   i > 0 ? "," : "", image->filter ? "+" : "",
			   image->filter ? image->filter : "", ret->layers[i].hex, sizes[i]);
	assert_int_equal(buf_puts(&manifest, "]}"), 0);
	write_blob(state, name, buf_data(&manifest), buf_len(&manifest));
	digest_of(buf_data(&manifest), buf_len(&manifest), &ret->manifest);
	buf_printf(index,
		   "%s{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
		   "\"digest\":\"sha256:%s\",\"size\":%zu",
		   buf_len(index) > 14 ? "," : "", ret->manifest.hex, buf_len(&manifest));
	if (image->tag)
		buf_printf(index, ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"%s\"}",
			   image->tag);
	if (image->platform)
		buf_printf(index, ",\"platform\":%s", image->platform);
	buf_puts(index, "}");
	buf_deinit(&manifest);
	buf_deinit(&config);
}

void layout_write(void **state, const char *name, const struct layout_image *images, size_t n,
		  struct layout_written *ret)
{
	struct buf index;
	buf_init(&index, JSON_MAX);
	make_dir(state, name, "");
	make_dir(state, name, "/blobs");
	make_dir(state, name, "/blobs/sha256");
	write_text(state, name, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
	buf_puts(&index, "{\"manifests\":[");
	for (size_t i = 0; i < n; i++)
		write_image(state, name, &images[i], &ret[i], &index);
	assert_int_equal(buf_puts(&index, "]}"), 0);
	char *text = buf_take_string(&index);
	write_text(state, name, "index.json", text);
	free(text);
}

static struct archive *open_tar(void **state, const char *name, const char *filter)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	struct archive *a = archive_write_new();
	archive_write_set_format_pax_restricted(a);
	if (filter)
		assert_int_equal(archive_write_add_filter_by_name(a, filter), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	return a;
}

static void add_member(struct archive *a, const char *name, const void *data, size_t len)
{
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (la_int64_t)len);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, data, len), len);
	archive_entry_free(e);
}

void layout_write_docker(void **state, const char *name, const struct layout_image *image,
			 struct layout_written *ret)
{
	struct archive *a = open_tar(state, name, NULL);
	struct buf config, manifest;
	char member[DIGEST_HEX_LEN + 16];
	ret->n_layers = count_layers(image);
	buf_init(&manifest, JSON_MAX);
	for (size_t i = 0; i < ret->n_layers; i++) {
		struct blob blob = { NULL, 0 };
		make_layer(image, i, ret, &blob);
		snprintf(member, sizeof(member), "%s/layer.tar", ret->layers[i].hex);
		add_member(a, member, blob.data, blob.len);
		blob_deinit(&blob);
	}
	make_config(image, ret, &config);
	snprintf(member, sizeof(member), "%s.json", ret->config.hex);
	add_member(a, member, buf_data(&config), buf_len(&config));
	buf_printf(&manifest, "[{\"Config\":\"%s\",\"RepoTags\":", member);
	if (image->tag)
		buf_printf(&manifest, "[\"%s\"]", image->tag);
	else
		buf_puts(&manifest, "null");
	buf_puts(&manifest, ",\"Layers\":[");
	for (size_t i = 0; i < ret->n_layers; i++)
		buf_printf(&manifest, "%s\"%s/layer.tar\"", i > 0 ? "," : "", ret->layers[i].hex);
	assert_int_equal(buf_puts(&manifest, "]}]"), 0);
	add_member(a, "manifest.json", buf_data(&manifest), buf_len(&manifest));
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	buf_deinit(&manifest);
	buf_deinit(&config);
}

/* Adds the files of @dir, which is consumed, as members "PREFIX...". */
static void pack_dir(struct archive *a, int dir_fd, const char *prefix)
{
	cleanup_dir DIR *dir = fdopendir(dir_fd);
	struct dirent *de;
	assert_non_null(dir);
	while ((de = readdir(dir))) {
		char member[512];
		if (de->d_name[0] == '.')
			continue;
		snprintf(member, sizeof(member), "%s%s", prefix, de->d_name);
		int sub = openat(dirfd(dir), de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0) {
			snprintf(member, sizeof(member), "%s%s/", prefix, de->d_name);
			pack_dir(a, sub, member);
			continue;
		}
		char *text;
		size_t len;
		assert_int_equal(file_read_at(dirfd(dir), de->d_name, LAYERS_TAR_MAX, &text, &len),
				 0);
		add_member(a, member, text, len);
		free(text);
	}
}

void layout_pack(void **state, const char *name, const char *to, const char *filter)
{
	struct archive *a = open_tar(state, to, filter);
	int fd = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	pack_dir(a, fd, "./");
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
}
