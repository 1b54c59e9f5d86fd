/* SPDX-License-Identifier: Apache-2.0 */
/* OCI layouts and docker archives for tests, made below the fixture's directory. */
#ifndef TESTS_UNIT_IMAGES_FETCH_LAYOUT_H
#define TESTS_UNIT_IMAGES_FETCH_LAYOUT_H

#include <stddef.h>

#include "images/spec/digest.h"
#include "tests/unit/images/render/layers.h"

#define LAYOUT_LAYERS_MAX 8

/* An image to write. */
struct layout_image {
	const char *const *layers[LAYOUT_LAYERS_MAX]; /* lines as for layers_make(); NULL ends */
	const char *filter;                           /* compression of the layers, or NULL */
	const char *architecture;                     /* NULL: this machine's */
	const char *config;   /* members of the JSON object "config", or NULL */
	const char *tag;      /* or NULL */
	const char *platform; /* JSON object for the index entry, or NULL */
};

/* What was written. */
struct layout_written {
	struct digest manifest;
	struct digest config;
	struct digest layers[LAYOUT_LAYERS_MAX];
	struct digest diff_ids[LAYOUT_LAYERS_MAX];
	size_t n_layers;
};

/* Writes an OCI layout with @n images into the new directory @name. @ret has @n elements. */
void layout_write(void **state, const char *name, const struct layout_image *images, size_t n,
		  struct layout_written *ret);

/* Writes what "docker save" would write for one image into the file @name. */
void layout_write_docker(void **state, const char *name, const struct layout_image *image,
			 struct layout_written *ret);

/* Packs the directory @name into the tar @to, optionally compressed as a whole. */
void layout_pack(void **state, const char *name, const char *to, const char *filter);

/* The path of a blob, for damaging it: "NAME/blobs/sha256/HEX". The caller frees it. */
char *layout_blob_path(void **state, const char *name, const struct digest *digest);

#endif
