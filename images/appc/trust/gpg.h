/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpg is asked, through GPGME: to tell about a key, to check a signature.
 *
 * These functions load keys into a home of their own (home.h), which is empty before. They leave
 * processes to whoever reaps, and depend on the environment of the process: they run in a worker
 * (worker.h).
 */
#ifndef IMAGES_APPC_TRUST_GPG_H
#define IMAGES_APPC_TRUST_GPG_H

#include <stddef.h>

#include "images/appc/trust/home.h"
#include "images/appc/trust/key.h"
#include "images/appc/trust/keyring.h"
#include "lib/base/err.h"

/* Fills *ret for the armoured key in the @len bytes of @text. Errors as trust_key_inspect(). */
int gpg_inspect(const struct gpg_home *home, const char *text, size_t len, struct key_info *ret,
		struct err *e);

/*
 * Checks the @signature_len bytes of @signature, detached, over the whole file @signed_fd, which is
 * read with pread(2). 0 and *ret, or errors as keystore_verify() has them, without the image's
 * name.
 */
int gpg_verify(const struct gpg_home *home, const struct keyring *ring, int signed_fd,
	       const void *signature, size_t signature_len, struct trust_verdict *ret,
	       struct err *e);

#endif
