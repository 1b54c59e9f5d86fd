/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images from registries, through the program skopeo(1): what a name stands for now, and the
 * image's blobs into an OCI layout. docker:// and oci:// references both mean this.
 *
 * What skopeo reads on its own applies: registries.conf (mirrors, blocked and insecure registries),
 * certs.d (certificates), containers-policy.json (signatures), and, for registries about which
 * husk's configuration says nothing, the credentials of "skopeo login" and "docker login". A
 * registry that speaks plain HTTP needs o->insecure_tls, also on this machine, or an entry with
 * insecure = true in registries.conf.
 */
#ifndef IMAGES_FETCH_REGISTRY_H
#define IMAGES_FETCH_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "images/fetch/common/options.h"
#include "images/spec/digest.h"
#include "images/spec/registry_name.h"
#include "lib/base/err.h"

/*
 * Attempts in a row of which none brings a blob more: a quarter of a minute of waiting between
 * them.
 */
#define REGISTRY_ATTEMPTS_MAX 5

/* The manifest of an image, as a registry has it. */
struct registry_manifest {
	struct digest
		source; /* of what the name points to: the manifest, or an index that has it */
	struct digest manifest; /* of @text */
	char *text;             /* owned, NUL-terminated, at most OCI_JSON_MAX bytes */
	size_t len;
};

#define REGISTRY_MANIFEST_INIT ((struct registry_manifest){ .len = 0 })

/* Frees what it owns. */
void registry_manifest_deinit(struct registry_manifest *m);

/*
 * Asks what @n stands for, for this machine, without fetching any of its blobs: skopeo runs once,
 * once more for each index on the way (30 to 50 ms each and 20 MiB of memory, besides the network).
 * The digests of all that is received are verified against what named it. Signatures are not looked
 * at, registry_copy() does that. @ret is initialised and stays so after a failure. 0 or -errno with
 * @e, which does not name the image: the caller knows what the user called it.
 */
int registry_look(const struct registry_name *n, const struct fetch_options *o,
		  struct registry_manifest *ret, struct err *e);

/*
 * Makes the directory @layout_fd the OCI layout of exactly the image @m of @n. Layers which are
 * there with the size that the manifest says are not fetched (nor hashed: rendering does), so the
 * caller may link some there, and a layout that an earlier call left half done goes on where that
 * stopped, but for blobs under way: skopeo begins these anew. The configuration skopeo reads each
 * time. Other blobs stay. The caller holds a lock on the directory. One run of skopeo, and another
 * one after each failure of the network, with waits; all runs together take no more than the bytes
 * that the manifest says, and skopeo is killed beyond; a manifest that says more than @bytes_max is
 * refused before.
 *
 * The host's policy decides about signatures in each call, also if nothing is left to fetch.
 * Progress is told in bytes of the blobs that are missing at the start. 0 or -errno with @e.
 */
int registry_copy(const struct registry_name *n, const struct registry_manifest *m, int layout_fd,
		  const struct fetch_options *o, uint64_t bytes_max, struct err *e);

#endif
