/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store knows about an image besides its blobs: images/HEX.json, HEX the digest of its
 * manifest.
 *
 * An image is in the store when its record is; blobs without a record are leftovers. The time of
 * the file's last modification is the time of the image's last use.
 */
#ifndef IMAGES_STORE_RECORD_H
#define IMAGES_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/config.h"
#include "images/spec/digest.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define RECORD_NAMES_MAX ((size_t)64) /* tags of one image; the oldest are forgotten */
#define RECORD_JSON_MAX \
	((size_t)65536)               /* that many names, each with two bytes for each of its own */
#define RECORD_BELOW_MAX ((size_t)64) /* dependencies, and theirs */
#define RECORD_KEY_LEN   ((size_t)128) /* hex digits of SHA-512 */

/*
 * What the layers of an image are, and how its configuration is to be read. An image has the kind
 * that its manifest says (layout_read_image()).
 */
enum image_kind {
	IMAGE_OCI,    /* OCI layers, OCI configuration */
	IMAGE_ROOTFS, /* one tar of a root file system, in which no name means a whiteout */
	IMAGE_ACI, /* one appc image archive, its manifest as the configuration (images/spec/aci.h) */
	IMAGE_KINDS,
};

struct record {
	struct digest id; /* of the manifest */
	enum image_kind kind;
	struct strv names;   /* for people, 1 to RECORD_NAMES_MAX, the newest last */
	struct digest chain; /* names the rendered image */
	uint64_t size;       /* bytes of the image's blobs */
	int64_t imported_ns; /* since the epoch */
	/* Of an ACI. */
	char key[RECORD_KEY_LEN + 1]; /* hex digits of the SHA-512 of the tar; "" for others */
	struct digest *below; /* owned; ids of the images that it is on top of, the lowest first */
	size_t n_below;       /* up to RECORD_BELOW_MAX */
	bool unverified;      /* nobody looked at its signature: no verified image is put on top */
};

/* An empty record, and freeing what one holds. */
void record_init(struct record *r);
void record_deinit(struct record *r);

/*
 * What people call the image: "sha256-" and the digest of its manifest; an appc image "sha512-" and
 * the first half of its key, as rkt does.
 */
void record_id_text(const struct record *r, char out[IMAGE_ID_LEN + 1]);

/* The newest name. */
const char *record_name(const struct record *r);

/*
 * Makes @name (str_is_text() of IMAGE_NAME_MAX) the newest one; at RECORD_NAMES_MAX the oldest
 * is forgotten. 0, -EINVAL, -ENOMEM.
 */
int record_add_name(struct record *r, const char *name);

/* Copies the ids of the images below. 0, -E2BIG, -ENOMEM. */
int record_set_below(struct record *r, const struct digest *ids, size_t n);

/* Takes @name away. True if it was there. The caller does not keep a record without names. */
bool record_remove_name(struct record *r, const char *name);

/* Appends the record's text to @out. 0 or -errno. */
int record_format(const struct record *r, struct buf *out);

/* Reads a record's text into an initialised @ret. 0, -EBADMSG, -ENOMEM. */
int record_parse(const char *text, size_t len, struct record *ret);

#endif
