/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/fetch/pack.h"
#include "images/fetch/resolve.h"
#include "images/fetch/source.h"
#include "images/spec/oci.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"

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
	return source_decompress(from, (uint64_t)st.st_size, to, bytes_max, ret, e);
}

/* Configuration and manifest for the layer. */
static int rootfs_describe(struct import *im, const struct oci_descriptor *layer,
			   struct digest *ret_id, struct err *e)
{
	struct oci_descriptor layers[] = { *layer };
	struct oci_manifest m = {
		.layers = layers,
		.n_layers = ARRAY_SIZE(layers),
		.is_rootfs = true,
	};
	CLEANUP(buf_deinit) struct buf config;
	buf_init(&config, OCI_JSON_MAX);
	int r = oci_config_format(&layer->digest, 1, &config);
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
	if (r == 0) {
		/* Of a tar nobody counted the bytes: a child without our memory wrote them. */
		fetch_meter_update(&meter, (uint64_t)st.st_size);
		fetch_meter_end(&meter);
	}
	layer.size = (uint64_t)st.st_size;
	if (r == 0)
		r = import_add(im, fd, &layer.digest, e);
	return r < 0 ? r : rootfs_describe(im, &layer, ret_id, e);
}
