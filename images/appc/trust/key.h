/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of public keys and of signatures, and why they do not do.
 */
#ifndef IMAGES_APPC_TRUST_KEY_H
#define IMAGES_APPC_TRUST_KEY_H

#include <stddef.h>
#include <stdlib.h>

#include "images/appc/trust/names.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

/* Most identities that are shown of one key; people have a handful, projects one. */
#define TRUST_IDENTITIES_MAX ((size_t)16)

/* What people know a key by. Holds no pointers. */
struct key_info {
	char fingerprint[TRUST_FINGERPRINT_MAX + 1]; /* of the primary key, lower case */
	/* Without those that are revoked; fit to be shown, see trust_copy_identity(). */
	char identities[TRUST_IDENTITIES_MAX][TRUST_IDENTITY_MAX + 1];
	size_t n_identities;
	size_t n_more; /* identities beyond TRUST_IDENTITIES_MAX */
};

struct trust_key {
	struct key_info info;
	char *text; /* owned: the armoured key and nothing else, not NUL-terminated */
	size_t len;
};

#define TRUST_KEY_INIT ((struct trust_key){ 0 })

/* Frees what @key owns. Accepts TRUST_KEY_INIT. */
static inline void trust_key_deinit(struct trust_key *key)
{
	free(key->text);
	*key = TRUST_KEY_INIT;
}

#define cleanup_trust_key CLEANUP(trust_key_deinit)

/* The configuration directories, below which keys are; NULL or "" for none. They need not exist. */
struct trust_dirs {
	const char *system, *local;
};

/* Largest signature file; one signature has less than a KiB. */
#define TRUST_SIGNATURE_MAX ((size_t)64 * 1024)
/* Most signatures in one file: people and machines of one project. */
#define TRUST_SIGNATURES_MAX ((size_t)16)

/* Why a signature does not do; @e is filled, too, as with a negative error. */
enum {
	TRUST_E_NO_GPG = 1, /* there is no program gpg */
	TRUST_E_NO_KEYS,    /* no key counts for the name */
	TRUST_E_UNKNOWN,    /* made by none of the keys that count */
	TRUST_E_MALFORMED,  /* no signature, too large, too many, or not understood */
	TRUST_E_TYPE,       /* not detached, or over text */
	TRUST_E_WEAK,       /* made with a digest that can be forged */
	TRUST_E_EXPIRED,    /* the signature or its key is */
	TRUST_E_REVOKED,    /* its key is */
	TRUST_E_BAD,        /* made over other content: the file or the signature was changed */
};

/* Whose signature it is that counted, the first one if several did. Holds no pointers. */
struct trust_verdict {
	struct key_info key;
	char signer[TRUST_FINGERPRINT_MAX + 1]; /* the primary key or the subkey that signed */
};

#endif
