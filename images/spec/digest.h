/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 digests in the form that OCI uses: "sha256:" and 64 lower-case hex digits. */
#ifndef IMAGES_SPEC_DIGEST_H
#define IMAGES_SPEC_DIGEST_H

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>

#define DIGEST_HEX_LEN  64
#define DIGEST_TEXT_MAX 255 /* longest digest string that is looked at */

/* DIGEST_E_ALGORITHM: a digest of another algorithm than sha256. */
enum {
	DIGEST_E_ALGORITHM = 1,
};

struct digest {
	char hex[DIGEST_HEX_LEN + 1]; /* "" while unset */
};

/*
 * Reads "sha256:HEX" (OCI image-spec, descriptor.md "Digests"). 0, DIGEST_E_ALGORITHM, or -EINVAL;
 * *ret is written only on 0.
 */
int digest_parse(const char *text, struct digest *ret);

/* Takes the hex digits alone. 0 or -EINVAL; *ret is written only on 0. */
int digest_from_hex(const char *hex, struct digest *ret);

/* "sha512-" and as many digits as rkt shows of a key. */
#define DIGEST_APPC_ID_LEN ((size_t)71)

/*
 * What stands for an OCI image where appc wants an ID: "sha512-" and the first half of the SHA-512
 * of its digest's text, "sha256:HEX".
 */
void digest_appc_id(const struct digest *d, char out[DIGEST_APPC_ID_LEN + 1]);

/* True if both are set to the same digest. */
bool digest_equal(const struct digest *a, const struct digest *b);

/* The digest of @len bytes. */
void digest_of(const void *data, size_t len, struct digest *ret);

/* Hashing piece by piece. */
struct hasher {
	struct sha256_ctx ctx;
};

/* Starts with no bytes. */
void hasher_init(struct hasher *h);

/* Adds @len bytes. */
void hasher_update(struct hasher *h, const void *data, size_t len);

/* The digest of all bytes added; @h must be initialised again before it is used again. */
void hasher_finish(struct hasher *h, struct digest *ret);

/*
 * The chain ID of @n layers, bottom first (OCI image-spec, config.md "Layer ChainID"). @n is at
 * least 1.
 */
void digest_chain(const struct digest *diff_ids, size_t n, struct digest *ret);

#endif
