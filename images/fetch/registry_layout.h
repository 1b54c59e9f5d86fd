/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OCI layout directory that skopeo fills: which blobs of an image are there, how much is under
 * way.
 */
#ifndef IMAGES_FETCH_REGISTRY_LAYOUT_H
#define IMAGES_FETCH_REGISTRY_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "images/spec/oci.h"
#include "lib/base/err.h"

/* Most blobs of one image: its layers and its configuration. */
#define REGISTRY_BLOBS_MAX (OCI_LAYERS_MAX + 1)
/* Most files in the layout's directory that are looked at; skopeo has six transfers at a time. */
#define REGISTRY_FILES_MAX ((size_t)1024)

/* Configuration and layers of an image, each blob once. */
struct registry_blobs {
	struct blob_ref v[REGISTRY_BLOBS_MAX];
	size_t n;
	uint64_t bytes; /* of all */
};

struct registry_sizes {
	size_t n_complete;
	uint64_t complete; /* bytes of blobs that are there with their sizes */
	uint64_t partial;  /* bytes of what skopeo is writing */
	uint64_t largest;  /* bytes of the largest blob that is not there */
};

/*
 * Lists the blobs of @m. Sums cannot wrap: OCI_BLOB_MAX and OCI_LAYERS_MAX see to that. 0, or
 * -EBADMSG with @e: one digest with two sizes, which cannot be.
 */
int registry_blobs_list(const struct oci_manifest *m, struct registry_blobs *ret, struct err *e);

/*
 * Makes @layout_fd ready for skopeo: removes what another image or an interrupted run left there
 * and what would mislead skopeo (index.json, half-written blobs, blobs whose size is not the
 * manifest's) and the manifest itself, which skopeo would write in place, through other hard links
 * to it. Complete blobs stay; they are not hashed. 0 or -errno with @e.
 */
int registry_layout_begin(int layout_fd, const struct registry_blobs *b,
			  const struct digest *manifest, struct err *e);

/* Removes what skopeo was writing when it was killed. 0 or -errno with @e. */
int registry_layout_sweep(int layout_fd, struct err *e);

/*
 * Looks at sizes; nothing is opened. 0, or -errno with @e (-E2BIG: more than REGISTRY_FILES_MAX
 * files).
 */
int registry_layout_measure(int layout_fd, const struct registry_blobs *b,
			    struct registry_sizes *ret, struct err *e);

/*
 * Whether all blobs are there with their sizes; whoever imports the layout verifies the digests. 0,
 * or -EBADMSG/-errno with @e naming what is not.
 */
int registry_layout_check(int layout_fd, const struct registry_blobs *b, struct err *e);

#endif
