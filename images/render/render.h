/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From layers to one squashfs file: read, verify, merge and write.
 */
#ifndef IMAGES_RENDER_RENDER_H
#define IMAGES_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/render/layer.h"
#include "images/render/span.h"
#include "images/render/squash.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"

/* Uncompressed bytes of all layers, and apparent size of all files, unless the user says else. */
#define RENDER_BYTES_MAX (UINT64_C(64) << 30)

struct render_layer {
	enum layer_kind kind; /* what the tar means; OCI changesets unless it says else */
	struct span span;
	bool has_blob; /* @blob is known (not so for docker archives) */
	struct digest blob;
	struct digest diff_id; /* of the uncompressed tar, whatever it means */
};

struct render_job {
	const struct render_layer *layers; /* bottom first */
	size_t n_layers;
	int out;           /* empty file, read-write */
	const char *where; /* directory of the output, for messages */
	uint64_t bytes_max;

	/* See squash_new(). Plain unless it says else; does not change what the image means. */
	enum render_compression compression;
	int level;

	/*
	 * If @n_paths is not 0, only these absolute paths and the directories above them are
	 * rendered (merge_keep_only()).
	 */
	const char *const *paths;
	size_t n_paths;
};

struct render_result {
	struct digest content; /* see render_content_digest() */
	uint64_t size;         /* bytes of the file */
};

/*
 * Renders in this process; *@ret, unless @ret is NULL, says what came out. 0 or -errno with @e;
 * @job->out is then of no use.
 */
int render_here(const struct render_job *job, struct render_result *ret, struct err *e);

/* Renders in a confined child (images/render/confine.h). As render_here(). */
int render_confined(const struct render_job *job, struct render_result *ret, struct err *e);

/*
 * Reads and decompresses all layers of @job, in a confined child, and compares their digests; its
 * output is not used. 0, or -errno with @e (-EBADMSG: a digest does not fit).
 */
int render_check_confined(const struct render_job *job, struct err *e);

/*
 * The content digest of a rendered file, computed anew from the file @fd: the SHA-256 of all bytes
 * from SQUASH_SUPER_SIZE on to the end of the file, followed by its first SQUASH_SUPER_SIZE bytes
 * (the superblock, which is written last). So every byte of the file counts, and writer and reader
 * need one pass. 0 or -errno with @e: -EBADMSG if the file is shorter than that.
 */
int render_content_digest(int fd, struct digest *ret, struct err *e);

#endif
