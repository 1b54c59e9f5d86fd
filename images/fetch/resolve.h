/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a source and a name to one image: which manifest, which configuration, which layers.
 */
#ifndef IMAGES_FETCH_RESOLVE_H
#define IMAGES_FETCH_RESOLVE_H

#include "images/fetch/source.h"
#include "images/render/render.h"
#include "images/spec/oci.h"

#define RESOLVE_NESTING_MAX 4 /* indexes inside of indexes; real ones have two levels */

struct resolved {
	struct digest id;             /* of the manifest; of the configuration (docker archive) */
	char tag[IMAGE_NAME_MAX + 1]; /* the image's own name, or "" */
	char *manifest_text;          /* owned; NULL for docker archives */
	size_t manifest_len;
	char *config_text; /* owned */
	size_t config_len;
	struct oci_config config;
	struct render_layer *layers; /* owned, bottom first, descriptors owned */
	size_t n_layers;
};

/* An empty object, and freeing its contents. */
void resolved_init(struct resolved *r);
void resolved_deinit(struct resolved *r);

/*
 * Picks one manifest of an index: by @name ("" for none: a tag, a full name, or a digest
 * "sha256:HEX"), then by platform. Entries without a platform, and entries that are neither
 * manifest nor index, are candidates too if nothing else decides. Of entries that differ in the
 * variant of the platform alone that without one is taken, else the one that all machines can run,
 * else the first that this one can. 0 with *ret borrowed from @index,
 * or -errno with @e, which lists what there is.
 */
int resolve_choose(const struct oci_index *index, const char *name,
		   const struct oci_platform *platform, const struct oci_descriptor **ret,
		   struct err *e);

/* Likewise for a docker archive: @name is a repository tag, or the digest of the configuration. */
int resolve_choose_docker(const struct docker_manifest *m, const char *name,
			  const struct docker_image **ret, struct err *e);

/*
 * Reads and verifies index, manifest and configuration and opens the layers. @name as above. @ret
 * is initialised; after an error it must still be deinitialised. 0 or -errno with @e.
 */
int resolve_image(const struct source *s, const char *name, struct resolved *ret, struct err *e);

#endif
