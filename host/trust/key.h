/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A public key: looked at first, so that a person can decide, then perhaps added to the keystore.
 */
#ifndef HOST_TRUST_KEY_H
#define HOST_TRUST_KEY_H

#include <stddef.h>

#include "host/trust/armour.h"
#include "host/trust/names.h"
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
void trust_key_deinit(struct trust_key *key);

#define cleanup_trust_key CLEANUP(trust_key_deinit)

/*
 * Reads the key in the @len bytes of @text: one ASCII-armoured public key that can make signatures, is
 * not expired and not revoked. gpg works in a private directory below @tmp_dir (home.h). 0 and *ret,
 * which the caller deinits; or a positive TRUST_E_NO_GPG (keystore.h) or -errno, both with @e: cause and
 * remedy without the name of the file.
 */
int trust_key_inspect(const char *text, size_t len, const char *tmp_dir, struct trust_key *ret,
		      struct err *e);

#endif
