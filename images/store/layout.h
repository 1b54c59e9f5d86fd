/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCI image layout below a directory, as the store keeps one and as fetches fill one:
 * oci-layout, index.json, blobs/sha256/HEX (OCI image-spec 1.1, image-layout.md).
 */
#ifndef IMAGES_STORE_LAYOUT_H
#define IMAGES_STORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/render/render.h"
#include "images/spec/oci.h"
#include "images/store/record.h"
#include "lib/base/err.h"

#define LAYOUT_BLOBS "blobs/sha256" /* directory of the blobs, each named by its hex digits */

/* Bytes of "blobs/sha256/HEX", with its NUL, and that path for the blob @d. */
#define LAYOUT_PATH_LEN (sizeof(LAYOUT_BLOBS) + 1 + DIGEST_HEX_LEN)
void layout_path_of_blob(const struct digest *d, char out[LAYOUT_PATH_LEN]);

/* An image as its documents describe it. */
struct layout_image {
	struct digest id;
	enum image_kind kind;
	struct oci_manifest manifest;
	struct oci_config config; /* of an ACI, made from its manifest */
	struct strv whitelist;    /* of an ACI: the only paths that count; empty: all */
	/*
	 * Owned: the image's own files, its manifest, configuration and layers; then, of an ACI,
	 * the layers of the images below, the lowest first.
	 */
	struct blob_ref *files;
	size_t n_own, n_below;
	struct digest chain; /* names what rendering gives */
	uint64_t size;       /* bytes of manifest, configuration and layers, without those below */
};

/* An empty one, and freeing what it holds. */
void layout_image_init(struct layout_image *i);
void layout_image_deinit(struct layout_image *i);

/*
 * Makes what an empty layout has below @fd: oci-layout and the directories, which get its mode.
 * What is there is left alone. If @durable, it is there after a power cut, too. 0 or -errno.
 */
int layout_make(int fd, bool durable);

/* The layers of the images below, @n_below of them. */
const struct blob_ref *layout_below(const struct layout_image *i);

/* How many layers are rendered. */
size_t layout_n_layers(const struct layout_image *i);

/*
 * Reads and verifies manifest and configuration of the image @id, which is on top of the @n_below
 * images @below (of an ACI; their manifests are read, too). 0, or -errno with @e: -ENOENT if one of
 * them is not there, -EBADMSG if it is not what its digest says, or if it is an ACI and not
 * @is_appc, or the other way round.
 */
int layout_read_image(int fd, const struct digest *id, bool is_appc, const struct digest *below,
		      size_t n_below, struct layout_image *ret, struct err *e);

/*
 * Reads the blob @digest, a small text that is called @what, and verifies it; @size is UINT64_MAX
 * if that is not known. *ret is NUL-terminated and the caller's. 0, or -errno with @e as below.
 */
int layout_read_document(int fd, const struct digest *digest, uint64_t size, const char *what,
			 char **ret, size_t *ret_len, struct err *e);

/* True if the blob is there with that size. */
bool layout_has_blob(int fd, const struct digest *digest, uint64_t size);

/* True if all blobs of the image are there with their sizes. */
bool layout_has_image(int fd, const struct layout_image *i);

/*
 * Opens the layers for rendering; the array and its descriptors are the caller's
 * (layout_layers_free()). 0 or -errno with @e.
 */
int layout_open_layers(int fd, const struct layout_image *i, struct render_layer **ret,
		       struct err *e);

/*
 * Removes the layers of @i that are not what their digests say, so that the next fetch brings them
 * again. To be called when reading them failed with -EBADMSG.
 */
void layout_drop_damaged(int fd, const struct layout_image *i);

/* Closes and frees @n layers. Accepts NULL. */
void layout_layers_free(struct render_layer *layers, size_t n);

/*
 * Opens all blobs of an image that was read: manifest, configuration, layers, none twice. Their
 * contents are not verified. The array and its descriptors are the caller's (layout_blobs_free()).
 * 0 or -errno with @e.
 */
int layout_open_blobs(int fd, const struct layout_image *i, struct blob_file **ret, size_t *ret_n,
		      struct err *e);

/* Closes and frees @n blobs. Accepts NULL. */
void layout_blobs_free(struct blob_file *blobs, size_t n);

#endif
