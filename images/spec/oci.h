/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON documents of an image: bytes in, checked structures out. No file is touched here.
 *
 * OCI image-spec 1.1 (image-index.md, manifest.md, config.md, image-layout.md); docker image
 * manifest version 2 schema 2, which has the same fields under other media types; and manifest.json
 * of "docker save". Unknown fields are ignored, fields in use are checked for type and length.
 */
#ifndef IMAGES_SPEC_OCI_H
#define IMAGES_SPEC_OCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/config.h"
#include "images/spec/digest.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define OCI_JSON_MAX ((size_t)4 * 1024 * 1024) /* registries cap manifests at 4 MiB */
#define OCI_CONTAINERS_MAX \
	((size_t)32768)                   /* JSON objects and lists: 8 for each of 1024 manifests */
#define OCI_LAYERS_MAX     ((size_t)128)  /* docker's own limit is 125 */
#define OCI_MANIFESTS_MAX  ((size_t)1024) /* entries of one index */
#define OCI_TAGS_MAX       ((size_t)1024) /* names of one image of a docker archive */
#define OCI_MEDIA_TYPE_MAX ((size_t)255)  /* RFC 6838: 127 on each side of the slash */
#define OCI_PLATFORM_MAX   ((size_t)31)
#define OCI_BLOB_MAX       (INT64_C(1) << 50) /* far beyond any disk; keeps sums from wrapping */
#define OCI_ENTRY_NAME_MAX ((size_t)255)      /* member name in a docker archive */

struct json_object;

struct oci_platform {
	char os[OCI_PLATFORM_MAX + 1];
	char architecture[OCI_PLATFORM_MAX + 1]; /* GOARCH names */
	char variant[OCI_PLATFORM_MAX + 1];      /* images/spec/variant.h; of hosts "" */
};

/* The platform that this machine runs. */
extern const struct oci_platform oci_host_platform;

/* A blob by its content. */
struct blob_ref {
	struct digest digest;
	uint64_t size;
};

/* Reference to a blob, as documents have it. */
struct oci_descriptor {
	char media_type[OCI_MEDIA_TYPE_MAX + 1]; /* may be "" */
	struct digest digest;
	struct oci_platform platform;
	char tag[IMAGE_NAME_MAX + 1];       /* org.opencontainers.image.ref.name, or "" */
	char full_name[IMAGE_NAME_MAX + 1]; /* io.containerd.image.name, or "" */
	bool has_platform;
	uint64_t size;
};

struct oci_index {
	struct oci_descriptor *manifests; /* owned */
	size_t n;
};

struct oci_manifest {
	char media_type[OCI_MEDIA_TYPE_MAX + 1]; /* what it says that it is; may be "" */
	struct oci_descriptor config;
	struct oci_descriptor *layers; /* owned; bottom first; 1 to OCI_LAYERS_MAX */
	size_t n_layers;
	bool is_rootfs; /* OCI_ANNOTATION_ROOTFS is there */
};

struct oci_config {
	struct oci_platform platform; /* members may be "" */
	struct digest *diff_ids;      /* owned; 1 to OCI_LAYERS_MAX */
	size_t n_layers;
	struct strv entrypoint;
	struct strv cmd;
	struct strv env;
	struct strv ports, volumes; /* as in struct image_config */
	int stop_signal;            /* 0: none */
	char working_dir[IMAGE_PATH_MAX + 1];
	char user[IMAGE_USER_MAX + 1];
};

/* One image of a docker archive. */
struct docker_image {
	char config[OCI_ENTRY_NAME_MAX + 1];
	struct strv tags;
	struct strv layers; /* member names, bottom first; 1 to OCI_LAYERS_MAX */
};

struct docker_manifest {
	struct docker_image *images; /* owned */
	size_t n;
};

/* Every *_init yields an empty object, every *_deinit frees its contents (also half-built ones). */
void oci_index_deinit(struct oci_index *i);
void oci_manifest_deinit(struct oci_manifest *m);
void oci_config_init(struct oci_config *c);
void oci_config_deinit(struct oci_config *c);
void docker_manifest_deinit(struct docker_manifest *m);

#define OCI_INDEX_INIT       ((struct oci_index){ 0 })
#define OCI_MANIFEST_INIT    ((struct oci_manifest){ 0 })
#define DOCKER_MANIFEST_INIT ((struct docker_manifest){ 0 })

/*
 * The parsers fill an empty @ret from @len bytes of JSON. 0, or -EBADMSG/-EOPNOTSUPP/-ENOMEM with
 * @e saying which field is wrong; @ret may then be half-filled and must still be deinitialised.
 */
int oci_layout_parse(const char *text, size_t len, struct err *e);
int oci_index_parse(const char *text, size_t len, struct oci_index *ret, struct err *e);
int oci_manifest_parse(const char *text, size_t len, struct oci_manifest *ret, struct err *e);
int oci_config_parse(const char *text, size_t len, struct oci_config *ret, struct err *e);
int docker_manifest_parse(const char *text, size_t len, struct docker_manifest *ret, struct err *e);

/* Media types of what husk writes. */
#define OCI_TYPE_INDEX      "application/vnd.oci.image.index.v1+json"
#define OCI_TYPE_MANIFEST   "application/vnd.oci.image.manifest.v1+json"
#define OCI_TYPE_CONFIG     "application/vnd.oci.image.config.v1+json"
#define OCI_TYPE_LAYER      "application/vnd.oci.image.layer.v1.tar"
#define OCI_TYPE_LAYER_GZIP "application/vnd.oci.image.layer.v1.tar+gzip"
#define OCI_TYPE_LAYER_ZSTD "application/vnd.oci.image.layer.v1.tar+zstd"
#define OCI_TYPE_APPC \
	"application/vnd.appc.image.manifest+json"    /* configuration: images/spec/aci.h */
#define OCI_TYPE_ACI "application/vnd.appc.image.tar" /* its layer: the image archive */

/*
 * An annotation of manifests that only husk knows: the layer is a root file system and no
 * changeset, so a name like ".wh.x" is that of a file. A part of the manifest, so that an image has
 * one meaning, whatever way it came.
 */
#define OCI_ANNOTATION_ROOTFS "io.husk.rootfs"

/*
 * Appends the text of an image manifest, of which media types, digests, sizes and @is_rootfs count.
 * Equal manifests give equal texts. 0 or -errno.
 */
int oci_manifest_format(const struct oci_manifest *m, struct buf *out);

/*
 * Appends a configuration for this machine that says nothing but what the @n layers are (at least
 * 1). 0 or -errno.
 */
int oci_config_format(const struct digest *diff_ids, size_t n, struct buf *out);

/* Appends the text of an index of @manifests, a list, which is taken over. 0 or -errno. */
int oci_index_format(struct json_object *manifests, struct buf *out);

/*
 * Parts of documents: the reference to a blob, with the name of an image unless @name is NULL; what
 * a configuration says of its layers. NULL if memory is short.
 */
struct json_object *oci_make_descriptor(const char *media_type, const struct digest *d,
					uint64_t size, const char *name);
struct json_object *oci_make_rootfs(const struct digest *diff_ids, size_t n);

/* True for the media types of an image index (and docker's manifest list), and of a manifest. */
bool oci_is_index_type(const char *media_type);
bool oci_is_manifest_type(const char *media_type);

#endif
