/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render-tar TAR IMAGE [plain|lz4|zstd [LEVEL]]: renders a root file system tar, in a confined
 * child as husk would, and prints what came out and what it took. For measurements.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/os/fd.h"

static long milliseconds(struct timeval t)
{
	return t.tv_sec * 1000 + t.tv_usec / 1000;
}

/* The digest of the uncompressed tar is what every image names; here it is computed first. */
static int measure(int tar, struct digest *ret)
{
	struct stat st;
	if (fstat(tar, &st) < 0)
		return -errno;
	const struct span span = { .fd = tar, .size = (uint64_t)st.st_size };
	return span_digest(&span, ret);
}

static int render(int tar, int out, enum render_compression compression, int level, struct err *e)
{
	struct render_layer layer = { .kind = LAYER_PLAIN, .span = { .fd = tar } };
	int r = measure(tar, &layer.diff_id);
	if (r < 0)
		return err_sys(e, r, "cannot read the tar");
	layer.span.size = (uint64_t)lseek(tar, 0, SEEK_END);
	const struct render_job job = {
		.layers = &layer,
		.n_layers = 1,
		.out = out,
		.where = "the directory of the image",
		.bytes_max = RENDER_BYTES_MAX,
		.compression = compression,
		.level = level,
	};
	struct render_result result;
	r = render_confined(&job, &result, e);
	if (r < 0)
		return r;
	struct rusage use;
	getrusage(RUSAGE_CHILDREN, &use);
	printf("cpu_ms %ld\nchild_kib %ld\nsize %llu\ncontent %s\n",
	       milliseconds(use.ru_utime) + milliseconds(use.ru_stime), use.ru_maxrss,
	       (unsigned long long)result.size, result.content.hex);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "plain", "lz4", "zstd" };
	enum render_compression compression = RENDER_PLAIN;
	struct err e = ERR_INIT;
	while (argc > 3 && compression <= RENDER_ZSTD && strcmp(argv[3], names[compression]) != 0)
		compression++;
	if (argc < 3 || argc > 5 || compression > RENDER_ZSTD) {
		fprintf(stderr, "usage: render-tar TAR IMAGE [plain|lz4|zstd [LEVEL]]\n");
		return 2;
	}
	cleanup_fd int tar = open(argv[1], O_RDONLY | O_CLOEXEC);
	cleanup_fd int out = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (tar < 0 || out < 0) {
		perror(tar < 0 ? argv[1] : argv[2]);
		return 1;
	}
	if (render(tar, out, compression, argc > 4 ? atoi(argv[4]) : 0, &e) < 0) {
		fprintf(stderr, "render-tar: %s\n", e.text);
		return 1;
	}
	return 0;
}
