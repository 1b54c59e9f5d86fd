/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of one layer: a tar, as libarchive reads it, reduced to what an image can hold.
 *
 * Runs inside of the confined child only.
 */
#ifndef IMAGES_RENDER_LAYER_H
#define IMAGES_RENDER_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "images/render/stream.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define LAYER_PATH_MAX         ((size_t)4096)  /* PATH_MAX of Linux, with its NUL */
#define LAYER_TARGET_MAX       ((size_t)4095)  /* of a symbolic link, without its NUL */
#define LAYER_XATTRS_MAX       ((size_t)64)    /* of one entry; real files have two or three */
#define LAYER_XATTR_NAME_MAX   ((size_t)255)   /* XATTR_NAME_MAX of Linux */
#define LAYER_XATTR_VALUE_MAX  ((size_t)65536) /* XATTR_SIZE_MAX of Linux */
#define LAYER_ENTRIES_MAX      ((uint32_t)1 << 20)
#define LAYER_DEVICE_MAJOR_MAX 4095    /* 12 bits in squashfs, as in Linux */
#define LAYER_DEVICE_MINOR_MAX 1048575 /* 20 bits */

/* LAYER_END: no more entries, or no more data of an entry. */
enum {
	LAYER_END = 1,
};

struct layer_xattr {
	const char *name;
	const void *value;
	size_t size;
};

/* One entry. Everything is borrowed from the layer until the next layer_next(). */
struct layer_entry {
	uint32_t number;      /* in the layer, from 0 */
	const char *path;     /* as it is in the tar: may be absolute, have "..", be any bytes */
	const char *hardlink; /* path of the linked file, or NULL; then only @path counts */
	const char *target;   /* of a symbolic link */
	uint32_t mode;        /* type and permissions, as in st_mode */
	uint32_t uid;
	uint32_t gid;
	uint32_t mtime;
	uint32_t major;
	uint32_t minor;
	uint64_t size; /* of a regular file, holes included */
	struct layer_xattr xattrs[LAYER_XATTRS_MAX];
	size_t n_xattrs;
};

/* What the tar of a layer means. */
enum layer_kind {
	LAYER_OCI,   /* a changeset of the OCI image-spec, layer.md; plain, gzip or zstd */
	LAYER_PLAIN, /* a root file system; also xz and bzip2. No whiteouts: ".wh.x" is a file */
	/*
	 * An image archive of the appc specification ("Image Archives"); compression and names as
	 * above. Yielded is what is in the directory "rootfs", and that itself as "."; the file
	 * "manifest" is skipped. Both must be there, the manifest once; "." is skipped, anything
	 * else an error. Hard links lead to a name below "rootfs"; targets of symbolic links are
	 * left alone.
	 */
	LAYER_ACI,
	LAYER_KIND_COUNT_,
};

struct layer;

/*
 * Cleans @path, shorter than LAYER_PATH_MAX, into @out, which has LAYER_PATH_MAX bytes: no leading
 * or trailing slash, no empty component, no "."; ".." removes the component before it and is
 * nothing at the top. The top itself is "".
 */
void layer_clean_path(const char *path, char *out);

/*
 * Starts reading a layer from @span (borrowed), at most @bytes_max bytes when decompressed. 0 or
 * -errno with @e.
 */
int layer_new(const struct span *span, enum layer_kind kind, uint64_t bytes_max, struct layer **ret,
	      struct err *e);

/* Accepts NULL. */
void layer_free(struct layer *l);
DEFINE_FREEP(layer);

/*
 * True for the extended attributes that squashfs can hold and that mean something in a guest:
 * user.*, trusted.* and security.*, but of these not trusted.overlay.* and security.selinux.
 */
bool layer_keeps_xattr(const char *name);

/* Reads the next entry, with the attributes that are kept. 0, LAYER_END, or -errno with @e. */
int layer_next(struct layer *l, struct layer_entry *ret, struct err *e);

/*
 * Yields the next piece of the current entry's content with its place in the file; places between
 * pieces are holes, and they never go back. 0, LAYER_END, or -errno with @e.
 */
int layer_data(struct layer *l, const void **ret, size_t *ret_len, uint64_t *ret_offset,
	       struct err *e);

/*
 * Reads what is left and compares the digests: @blob (NULL if there is none to compare with) is
 * that of the file as stored, @diff_id that of the tar. 0 or -errno with @e.
 */
int layer_verify(struct layer *l, const struct digest *blob, const struct digest *diff_id,
		 struct err *e);

/*
 * After a failure: if the stored file @span does not have the digest @blob, then that is the cause
 * worth telling, and @e is replaced.
 */
void layer_explain(const struct span *span, const struct digest *blob, struct err *e);

/* Uncompressed bytes read so far. */
uint64_t layer_bytes(const struct layer *l);

#endif
