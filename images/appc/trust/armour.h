/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ASCII armour of OpenPGP keys (RFC 9580, 6.2), as far as one has to look at it before gpg does:
 * where the key is in a text, and that it is the only thing of its kind. Pure.
 */
#ifndef IMAGES_APPC_TRUST_ARMOUR_H
#define IMAGES_APPC_TRUST_ARMOUR_H

#include <stddef.h>

#include "lib/base/err.h"

/*
 * Largest file with a key; most have some KiB, those with hundreds of certifications some hundred.
 */
#define TRUST_KEY_MAX ((size_t)1024 * 1024)

/*
 * Finds the one armoured public key in the @len bytes of @text, which may have other text in front
 * of it and behind it. *ret_start and *ret_len are the key from its BEGIN line to the end of its
 * END line (without the newline). 0, or -EINVAL/-EFBIG and @e with cause and remedy: no armour,
 * none of a public key, more than one, no end, a NUL byte, more than TRUST_KEY_MAX bytes.
 */
int armour_find_key(const char *text, size_t len, size_t *ret_start, size_t *ret_len,
		    struct err *e);

#endif
