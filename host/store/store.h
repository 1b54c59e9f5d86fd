/*
 * Images: from an OCI layout or a docker archive to one read-only squashfs file.
 *
 * The store is three directories below husk's data directory:
 *
 *   trees/  rendered images, one file per chain ID: HEX.vN, N the version of the rendering. A file
 *           there is complete, synced and never changed; pods keep it alive with hard links.
 *   tmp/    O_TMPFILE files live here while they have no name; the directory is always empty.
 *   locks/  one empty file, on which whoever renders an image holds a lock.
 *
 * Nothing here trusts an image: all archive formats are read in a forked child that holds no
 * privilege, no path and no descriptor but its input and its output; digests are verified always.
 */
#ifndef HOST_STORE_STORE_H
#define HOST_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/image/config.h"
#include "lib/base/err.h"

struct store;
struct image;

/* Whether image_open() found the rendered file or made it, and how long its parts took. */
struct image_timing {
	bool rendered;     /* false: it was there */
	int64_t parse_ms;  /* finding, reading and verifying manifest and configuration */
	int64_t render_ms; /* verifying, merging, writing and syncing; 0 unless rendered */
};

/*
 * Opens the store below the directory @data_dirfd (borrowed; it may be closed afterwards) and
 * creates trees/, tmp/ and locks/ with mode 0750 if they are missing. @data_path is only shown to
 * people (copied). 0 or -errno with @e.
 */
int store_open(int data_dirfd, const char *data_path, struct store **ret, struct err *e);

/* Closes the store. Accepts NULL. Images opened from it must be freed first. */
void store_free(struct store *s);

#define cleanup_store CLEANUP(store_freep)
static inline void store_freep(struct store **s)
{
	store_free(*s);
}

/*
 * Finds, verifies and, if this store has no rendered file for it yet, renders the image that
 * @reference names. A reference is one of
 *
 *   PATH                      an OCI layout (directory, or tar of one) or a docker archive with
 *                             exactly one image; what it is, is found from its content
 *   PATH:NAME                 the image NAME of several: a tag of an OCI layout, a repository tag
 *                             ("debian:12") of a docker archive, or a digest "sha256:HEX"
 *   oci:DIR[:NAME]            as skopeo(1) writes them
 *   oci-archive:FILE[:NAME]
 *   docker-archive:FILE[:NAME]
 *
 * Archives may be compressed as a whole with gzip, zstd, xz or bzip2 (then they are decompressed
 * into an unlinked file of the store for every call). Of a multi-platform image the manifest for
 * the architecture of this machine is taken.
 *
 * Concurrent calls for one image render it once. The calling process must have a single thread and
 * must not have SIGCHLD ignored. 0, or -errno with @e: one line that begins with `image "..."`.
 */
int image_open(struct store *s, const char *reference, struct image **ret, struct err *e);

/* Closes an image; the rendered file stays. Accepts NULL. */
void image_free(struct image *i);

#define cleanup_image CLEANUP(image_freep)
static inline void image_freep(struct image **i)
{
	image_free(*i);
}

/* "sha256-HEX": digest of the image manifest; of the configuration for a docker archive. */
const char *image_id(const struct image *i);

/*
 * For people: NAME of the reference, else the image's own tag, else the last component of the path
 * without ".tar" and the like. 1 to IMAGE_NAME_MAX bytes of printable ASCII.
 */
const char *image_name(const struct image *i);

/* "sha256-HEX": OCI chain ID of all layers; images with equal chain IDs share the rendered file. */
const char *image_chain_id(const struct image *i);

/* Size of the rendered file in bytes. */
uint64_t image_size(const struct image *i);

/* What the image asks for; borrowed from @i. */
const struct image_config *image_config(const struct image *i);
/* What opening @i took; borrowed from @i. */
const struct image_timing *image_timing(const struct image *i);

/*
 * Hard-links the rendered file (mode 0440) as @name into the directory @dirfd, which must be on the
 * file system of the store. While @i is open nobody removes the rendered file: it holds a shared
 * flock(2) on it, and whoever collects garbage takes the exclusive one first. 0 or -errno with @e.
 */
int image_link_rootfs(const struct image *i, int dirfd, const char *name, struct err *e);

#endif
