/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image on its way into the store.
 *
 * Whoever fetches an image begins an import of its reference, fills the import's OCI layout with
 * the image's blobs, and publishes it: only then the image is in the store, verified. An import
 * holds the lock of its reference, so nobody fetches the same thing at the same time (but see
 * import_begin_nested()).
 */
#ifndef IMAGES_STORE_IMPORT_H
#define IMAGES_STORE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/render/span.h"
#include "images/spec/digest.h"
#include "images/spec/oci.h"
#include "images/store/record.h"
#include "images/store/store.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct import;

/*
 * Begins the import of what @key stands for (a text of ref.h), after whoever imports it now. What
 * an earlier import of @key left behind is there again. 0 or -errno with @e.
 */
int import_begin(struct store *s, const char *key, struct import **ret, struct err *e);

/*
 * The same for a caller who has another import, and so must not wait for anybody: if somebody
 * imports @key now, this is an empty import beside that one, and the work is done twice.
 * import_keep() has no effect on it.
 */
int import_begin_nested(struct store *s, const char *key, struct import **ret, struct err *e);

/*
 * Ends the import and removes its files, unless it is to be gone on with (import_keep()). Accepts
 * NULL.
 */
void import_free(struct import *i);
DEFINE_FREEP(import);
#define cleanup_import CLEANUP(import_freep)

/* Leaves the files for the next import of the same key, if this one is not published. */
void import_keep(struct import *i);

/* The directory of the import's OCI layout, which is nobody else's; borrowed. */
int import_dirfd(const struct import *i);

/*
 * Takes a blob that the store has already. 0, or STORE_MISSING if there is none of that digest and
 * size, or it cannot be linked.
 */
int import_reuse(struct import *i, const struct digest *blob, uint64_t size);

/* Told by import_copy() what it copies, piece by piece. */
struct import_watch {
	void (*fn)(void *ctx, const void *data, size_t len);
	void *ctx;
};

/*
 * Copies @from as a blob and says its digest, which must be @want if that is not NULL. @watch
 * may be NULL. 0, or -errno with @e: -EBADMSG if the digest is another.
 */
int import_copy(struct import *i, const struct span *from, const struct digest *want,
		const struct import_watch *watch, struct digest *ret, struct err *e);

/* Makes a blob of @len bytes. 0 or -errno with @e. */
int import_text(struct import *i, const char *text, size_t len, struct digest *ret, struct err *e);

/* Makes the blob of an image manifest that says @m (oci_manifest_format()). 0 or -errno with @e. */
int import_manifest(struct import *i, const struct oci_manifest *m, struct digest *ret,
		    struct err *e);

/*
 * Creates a file without a name for a blob that the caller writes, of which import_add() then makes
 * a blob with the digest @digest, whatever it contains: that comes out when the image is published.
 * The descriptor, or -errno with @e; 0 or -errno with @e.
 */
int import_new_blob(struct import *i, struct err *e);
int import_add(struct import *i, int fd, const struct digest *digest, struct err *e);

/* What an image is, beside its blobs. */
struct import_image {
	struct digest id; /* of the manifest, a blob of the import */
	bool is_appc;
	const char *name;           /* str_is_text() of IMAGE_NAME_MAX; borrowed */
	const char *key;            /* of an ACI: hex digits of its SHA-512; borrowed */
	const struct digest *below; /* of an ACI: the images below, the lowest first; borrowed */
	size_t n_below;             /* up to RECORD_BELOW_MAX; all in the store */
	bool unverified;            /* of an ACI: its signature was not looked at */
};

/*
 * Verifies the image @image, renders it (who may not write rendered images only verifies), and puts
 * it into the store under its name. If the store has it already, it gets the name, and its blobs
 * are replaced. *ret_rendered says whether it was rendered. 0 or -errno with @e; the store then is
 * as before, but that it may have the image, if nothing failed but to note what the name stands
 * for.
 */
int import_publish(struct import *i, const struct import_image *image, bool *ret_rendered,
		   struct err *e);

#endif
