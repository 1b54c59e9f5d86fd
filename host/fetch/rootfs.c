/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/fetch/pack.h"
#include "host/fetch/resolve.h"
#include "host/image/oci.h"
#include "host/render/confine.h"
#include "host/render/stream.h"
#include "lib/os/fd.h"

/* What the confined child does. */
struct unpacking {
	int from;
	uint64_t size;
	int to;
	uint64_t max;
};

static void cleanup_stream(struct stream **s)
{
	stream_free(*s);
}

/* Writes the decompressed bytes of the tar, and reports their digest. */
static int unpack_child(void *ctx, struct buf *result, struct err *e)
{
	const struct unpacking *u = ctx;
	struct span span = { .fd = u->from, .size = u->size };
	struct digest digest;
	CLEANUP(cleanup_stream) struct stream *s = NULL;
	int r = stream_new(&span, true, u->max, &s, e);
	while (r == 0 && s) {
		const void *data = NULL;
		size_t len = 0;
		r = stream_next(s, &data, &len, e);
		if (r != 0)
			break;
		r = fd_write_all(u->to, data, len);
		if (r < 0)
			err_sys(e, r, "writing the decompressed tar");
	}
	if (r != STREAM_END || !s)
		return r;
	stream_content_digest(s, &digest);
	return buf_append(result, digest.hex, DIGEST_HEX_LEN);
}

/* The plain tar of the file @from becomes the content of @to. */
static int unpack(int from, uint64_t size, int to, uint64_t bytes_max, struct digest *ret,
		  struct err *e)
{
	struct unpacking u = { from, size, to, bytes_max };
	const int fds[] = { from, to };
	char hex[DIGEST_HEX_LEN + 1] = "";
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, DIGEST_HEX_LEN);
	int r = confine_run("decompressing", unpack_child, &u, fds, ARRAY_SIZE(fds), &result, e);
	if (r < 0)
		return r;
	memcpy(hex, buf_data(&result), MIN(buf_len(&result), (size_t)DIGEST_HEX_LEN));
	return digest_from_hex(hex, ret) < 0
		       ? err_set(e, -EIO, "decompressing: the helper process failed")
		       : 0;
}

/* Fills @to with the layer's tar. */
static int make_layer(const char *path, int to, uint64_t bytes_max, struct fetch_meter *meter,
		      struct digest *ret, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_sys(e, -errno, "cannot open");
	if (S_ISDIR(st.st_mode))
		return pack_directory(path, to, bytes_max, meter, ret, e);
	if (!S_ISREG(st.st_mode)) /* a device is not even opened */
		return err_set(e, -EINVAL, "neither a regular file nor a directory");
	cleanup_fd int from = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(e, -errno, "cannot open");
	return unpack(from, (uint64_t)st.st_size, to, bytes_max, ret, e);
}

/* Configuration and manifest for the layer. */
static int describe(struct import *im, const struct oci_descriptor *layer, struct digest *ret_id,
		    struct err *e)
{
	struct oci_descriptor layers[] = { *layer };
	struct oci_manifest m = {
		.layers = layers,
		.n_layers = ARRAY_SIZE(layers),
		.is_rootfs = true,
	};
	CLEANUP(buf_deinit) struct buf config;
	buf_init(&config, OCI_JSON_MAX);
	int r = oci_config_format(&resolve_host_platform, &layer->digest, 1, &config);
	if (r < 0)
		return err_sys(e, r, "cannot write the image configuration");
	r = import_text(im, buf_data(&config), buf_len(&config), &m.config.digest, e);
	if (r < 0)
		return r;
	str_copy(m.config.media_type, sizeof(m.config.media_type), OCI_TYPE_CONFIG);
	m.config.size = buf_len(&config);
	return import_manifest(im, &m, ret_id, e);
}

int rootfs_import(struct import *im, const char *path, uint64_t bytes_max,
		  const struct fetch_options *o, struct digest *ret_id, struct err *e)
{
	struct fetch_meter meter;
	struct oci_descriptor layer = { .media_type = OCI_TYPE_LAYER };
	cleanup_fd int fd = import_new_blob(im, e);
	if (fd < 0)
		return fd;
	fetch_meter_begin(&meter, o, path, 0);
	int r = make_layer(path, fd, bytes_max, &meter, &layer.digest, e);
	struct stat st = { 0 };
	if (r == 0 && fstat(fd, &st) < 0)
		r = err_sys(e, -errno, "cannot read what was packed");
	if (r == 0)
		fetch_meter_end(&meter);
	layer.size = (uint64_t)st.st_size;
	if (r == 0)
		r = import_add(im, fd, &layer.digest, e);
	return r < 0 ? r : describe(im, &layer, ret_id, e);
}
