/* SPDX-License-Identifier: Apache-2.0 */
/* An image of the store, opened: what it asks for, and its rendered file. */
#ifndef IMAGES_STORE_IMAGE_H
#define IMAGES_STORE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/config.h"
#include "images/spec/digest.h"
#include "images/store/store.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct blob_file;

/* An open image, as others may read it. It is made here only, and in more than that. */
struct image {
	/* "sha256-HEX": digest of the manifest; of an appc image "sha512-HEX", half of its key. */
	char id[IMAGE_ID_LEN + 1];
	/* For people: the newest name, or that of image_set_name(): as str_is_text(). */
	char name[IMAGE_NAME_MAX + 1];
	char chain_id[IMAGE_ID_LEN + 1]; /* images with equal ones share the rendered file */
	bool is_appc; /* then its blobs are its manifest, in two forms, and the archive */
	const char *manifest_type;  /* media type */
	struct image_config config; /* what it asks for */
	/* Of the rendered file; the descriptor, read-only, is -EBADF if it was opened without. */
	int rootfs;
	uint64_t size;   /* in bytes; 0 if it was opened without */
	bool rendered;   /* just now */
	int64_t open_ms; /* how many milliseconds image_open() took */
};

/*
 * Opens the image @id and renders it, if that has not been done yet. Its last use is now. The
 * calling process must have a single thread and must not have SIGCHLD ignored. 0, STORE_MISSING if
 * it is not in the store with all its blobs, or -errno with @e.
 */
int image_open(struct store *s, const struct digest *id, struct image **ret, struct err *e);

/*
 * The same without its rendered file: what it asks for is known, image_link_rootfs() fails. This is
 * no use of the image.
 */
int image_open_documents(struct store *s, const struct digest *id, struct image **ret,
			 struct err *e);

/* Closes an image; the rendered file stays. Accepts NULL. */
void image_free(struct image *i);
DEFINE_FREEP(image);
#define cleanup_image CLEANUP(image_freep)

/* Calls the image @name, if that is str_is_text() of IMAGE_NAME_MAX. Only @i knows. */
void image_set_name(struct image *i, const char *name);

/*
 * Reads the manifest of an appc image as it came, at most ACI_JSON_MAX bytes; *ret is
 * NUL-terminated and the caller's. 0 or -errno with @e.
 */
int image_read_appc(const struct image *i, char **ret, size_t *ret_len, struct err *e);

/*
 * Whether an app of the image runs here: see aci_check_platform(); others were checked when they
 * came.
 */
int image_check_platform(const struct image *i, struct err *e);

/* Opens the image's blobs, as layout_open_blobs(). 0 or -errno with @e. */
int image_open_blobs(const struct image *i, struct blob_file **ret, size_t *ret_n, struct err *e);

/* What image_verify() finds. */
enum image_health {
	IMAGE_INTACT,
	IMAGE_NOT_RENDERED,
	IMAGE_DAMAGED,
};

/*
 * Compares the rendered file of the image with what it was when it was rendered. 0, with @e saying
 * what is damaged, or -errno with @e.
 */
int image_verify(const struct image *i, enum image_health *ret, struct err *e);

/*
 * Renders the image anew, from its blobs, which are verified. Pods keep the file they have. 0,
 * -errno, @e.
 */
int image_repair(const struct image *i, struct err *e);

/*
 * Hard-links the rendered file (mode 0440) as @name into the directory @dirfd, which must be on the
 * file system of the store. While @i is open nobody removes the rendered file: it holds a shared
 * flock(2) on it, and whoever collects garbage takes the exclusive one first. 0 or -errno with @e.
 */
int image_link_rootfs(const struct image *i, int dirfd, const char *name, struct err *e);

#endif
