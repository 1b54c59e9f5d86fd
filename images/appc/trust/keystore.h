/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may sign which images: trusted public keys in the configuration directories, and signatures
 * that are checked against them.
 *
 *	trustedkeys/root.d/FINGERPRINT              a key for all names
 *	trustedkeys/prefix.d/PREFIX/FINGERPRINT     a key for PREFIX and all names below it
 *
 * are armoured public keys, one per file, below the directory of the distribution and that of the
 * host (struct trust_dirs); names of files are lower-case fingerprints, other names are ignored. An
 * empty file in the host's takes back the trust in the distribution's key of that name (keyring.c
 * has the order). The layout is rkt's.
 *
 * A signature counts if gpg finds it good, it is one over bytes (not over text) with a digest of
 * the SHA-2 family, and it was made by a key that counts for the name and is neither expired,
 * revoked nor disabled. Of several signatures in one file one must count, and none by a key that
 * counts may be bad. Signatures by other keys, and those that are expired, revoked or weak, are as
 * if they were not there. gpg may refuse a file whose signatures are of different kinds.
 */
#ifndef IMAGES_APPC_TRUST_KEYSTORE_H
#define IMAGES_APPC_TRUST_KEYSTORE_H

#include <limits.h>
#include <stddef.h>

#include "images/appc/trust/armour.h"
#include "images/appc/trust/key.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

/*
 * Reads the key in the @len bytes of @text: one ASCII-armoured public key that can make signatures,
 * is not expired and not revoked. gpg works in a private directory below @tmp_dir (home.h). 0 and
 * *ret, which the caller deinits; or a positive TRUST_E_NO_GPG or -errno, both with @e: cause and
 * remedy without the name of the file.
 */
int trust_key_inspect(const char *text, size_t len, const char *tmp_dir, struct trust_key *ret,
		      struct err *e);

/*
 * Adds @key to the directory @local_dir for the names below @prefix, NULL for all names:
 * atomically, mode 0644, directories made as needed, mode 0755. It replaces what is there, also an
 * empty file. *ret_path is where it is. 0, or -errno and @e.
 */
int keystore_add(const char *local_dir, const char *prefix, const struct trust_key *key,
		 char ret_path[PATH_MAX], struct err *e);

/*
 * Checks the detached signature in the file @signature_fd, armoured or binary, over the file
 * @signed_fd, both regular, above 2 and read from their beginning without moving their offsets; the
 * signed one is streamed. The keys that count are those for @image_name, NULL for only those for
 * all names. Nobody else may be able to write to the signed file, now and later: what is verified
 * is the content at this moment. gpg works in a private directory below @tmp_dir (home.h). 0 and
 * *ret; a positive TRUST_E_ code or -errno, both with @e: cause and remedy without the name of the
 * file.
 */
int keystore_verify(const struct trust_dirs *dirs, const char *image_name, int signed_fd,
		    int signature_fd, const char *tmp_dir, struct trust_verdict *ret,
		    struct err *e);

#endif
