/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to three layers through libarchive, the merge and the squashfs writer; a file system that
 * comes out must be readable. The first four bytes are the lengths of the first two layers, in
 * units of 512 bytes, 14 bits each, little endian, with the kinds of the layers (the third's, and
 * the others') in the upper two bits; the rest is the third.
 */
#include <sqfs/compressor.h>
#include <sqfs/dir_reader.h>
#include <sqfs/id_table.h>
#include <sqfs/io.h>
#include <sqfs/super.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define BYTES_MAX  (UINT64_C(4) << 20) /* keeps runs short */
#define BLOCK_SIZE ((size_t)512)

/* Makes the checksum of every block that looks like a header right. */
static void fix_checksums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + BLOCK_SIZE <= size; at += BLOCK_SIZE) {
		uint8_t *h = data + at;
		unsigned int sum = 8 * ' ';
		if (memcmp(h + 257, "ustar", 5) != 0)
			continue;
		for (size_t i = 0; i < BLOCK_SIZE; i++)
			sum += i >= 148 && i < 156 ? 0 : h[i];
		for (size_t i = 0; i < 6; i++)
			h[148 + i] = (uint8_t)('0' + (sum >> (15 - 3 * i) & 7));
		h[154] = '\0';
		h[155] = ' ';
	}
}

static void cleanup_object(void *p)
{
	sqfs_destroy(*(void **)p);
}

/* Reads the whole tree back. */
static void check_image(int fd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CLEANUP(cleanup_object)
	sqfs_file_t *file = sqfs_open_file(path, SQFS_FILE_OPEN_READ_ONLY);
	sqfs_super_t super;
	sqfs_compressor_config_t cfg;
	CLEANUP(cleanup_object) sqfs_compressor_t *cmp = NULL;
	CLEANUP(cleanup_object) sqfs_id_table_t *ids = sqfs_id_table_create(0);
	if (!file || !ids || sqfs_super_read(&super, file) != 0 ||
	    sqfs_compressor_config_init(&cfg, (SQFS_COMPRESSOR)super.compression_id,
					super.block_size, SQFS_COMP_FLAG_UNCOMPRESS) != 0 ||
	    sqfs_compressor_create(&cfg, &cmp) != 0 ||
	    sqfs_id_table_read(ids, file, &super, cmp) != 0)
		abort();
	CLEANUP(cleanup_object)
	sqfs_dir_reader_t *dirs = sqfs_dir_reader_create(&super, cmp, file, 0);
	sqfs_tree_node_t *root = NULL;
	if (!dirs || sqfs_dir_reader_get_full_hierarchy(dirs, ids, NULL, 0, &root) != 0)
		abort();
	sqfs_dir_tree_destroy(root);
}

static void add_layer(struct render_job *job, struct render_layer *layers, unsigned int kind,
		      uint8_t *data, size_t len)
{
	if (len == 0)
		return;
	struct render_layer *l = &layers[job->n_layers++];
	fix_checksums(data, len);
	*l = (struct render_layer){ .kind = kind % LAYER_KIND_COUNT_,
				    .span = { .fd = memfd_create("layer", MFD_CLOEXEC),
					      .size = len } };
	if (l->span.fd < 0 || fd_write_all(l->span.fd, data, len) < 0)
		abort();
	digest_of(data, len, &l->diff_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	uint8_t *copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	size_t left = size - 4;
	size_t first = MIN(left, BLOCK_SIZE * (size_t)(copy[0] | (copy[1] & 0x3f) << 8));
	size_t second = MIN(left - first, BLOCK_SIZE * (size_t)(copy[2] | (copy[3] & 0x3f) << 8));
	struct render_layer layers[3];
	struct render_job job = { .layers = layers, .where = "DIR", .bytes_max = BYTES_MAX };
	add_layer(&job, layers, copy[3] >> 6, copy + 4, first);
	add_layer(&job, layers, copy[3] >> 6, copy + 4 + first, second);
	add_layer(&job, layers, copy[1] >> 6, copy + 4 + first + second, left - first - second);
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	job.out = out;
	job.compression = (copy[1] >> 6) % (RENDER_ZSTD + 1);
	struct err e = ERR_INIT;
	if (out >= 0 && job.n_layers > 0) {
		if (render_here(&job, NULL, &e) == 0)
			check_image(out);
		else if (e.code >= 0 || e.text[0] == '\0')
			abort();
	}
	for (size_t i = 0; i < job.n_layers; i++)
		span_deinit(&layers[i].span);
	free(copy);
	return 0;
}
