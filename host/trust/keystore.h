/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may sign which images: trusted public keys in the configuration directories, and signatures that
 * are checked against them.
 *
 *	trustedkeys/root.d/FINGERPRINT              a key for all names
 *	trustedkeys/prefix.d/PREFIX/FINGERPRINT     a key for PREFIX and all names below it
 *
 * are armoured public keys, one per file, below the directory of the distribution and that of the host;
 * names of files are lower-case fingerprints, other names are ignored. An empty file in the host's takes
 * back the trust in the distribution's key of that name (keyring.c has the order). The layout is rkt's.
 *
 * A signature counts if gpg finds it good, it is one over bytes (not over text) with a digest of the
 * SHA-2 family, and it was made by a key that counts for the name and is neither expired, revoked nor
 * disabled. Of several signatures in one file one must count, and none by a key that counts may be bad.
 * Signatures by other keys, and those that are expired, revoked or weak, are as if they were not there.
 * gpg may refuse a file whose signatures are of different kinds.
 */
#ifndef HOST_TRUST_KEYSTORE_H
#define HOST_TRUST_KEYSTORE_H

#include <limits.h>
#include <stddef.h>

#include "host/trust/key.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

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

struct keystore;

/*
 * The keystore below the configuration directories @system_dir and @local_dir, either NULL or "" for
 * none; they need not exist. Nothing is read yet. 0 and *ret, which the caller frees, or -errno with @e.
 */
int keystore_open(const char *system_dir, const char *local_dir, struct keystore **ret,
		  struct err *e);

/* Frees the keystore. Accepts NULL. */
void keystore_free(struct keystore *ks);

static inline void cleanup_keystore_(struct keystore **ks)
{
	keystore_free(*ks);
}

#define cleanup_keystore CLEANUP(cleanup_keystore_)

/*
 * Adds @key to the local directory for the names below @prefix, NULL for all names: atomically, mode
 * 0644, directories made as needed, mode 0755. It replaces what is there, also an empty file. *ret_path
 * is where it is. 0, or -errno and @e.
 */
int keystore_add(const struct keystore *ks, const char *prefix, const struct trust_key *key,
		 char ret_path[PATH_MAX], struct err *e);

/*
 * Checks the detached signature in the file @signature_fd, armoured or binary, over the file
 * @signed_fd, both regular, above 2 and read from their beginning without moving their offsets; the
 * signed one is streamed. The keys that count are those for @image_name, NULL for only those for all
 * names. Nobody else may be able to write to the signed file, now and later: what is verified is the
 * content at this moment. gpg works in a private directory below @tmp_dir (home.h).
 * 0 and *ret; a positive TRUST_E_ code or -errno, both with @e: cause and remedy without the name of
 * the file.
 */
int keystore_verify(const struct keystore *ks, const char *image_name, int signed_fd,
		    int signature_fd, const char *tmp_dir, struct trust_verdict *ret,
		    struct err *e);

#endif
