/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one line of gpg's status output that GPGME does not hand on: which kind of signature a valid
 * one is (doc/DETAILS of GnuPG, VALIDSIG). Pure.
 */
#ifndef IMAGES_APPC_TRUST_STATUS_H
#define IMAGES_APPC_TRUST_STATUS_H

#include "images/appc/trust/names.h"

/* Kinds of signatures (RFC 9580, 5.2.1) that a file can have; only the first says all its bytes. */
enum {
	STATUS_BINARY = 0x00,
	STATUS_TEXT = 0x01, /* line ends do not count */
};

struct status_valid {
	char signer[TRUST_FINGERPRINT_MAX + 1]; /* of the primary key or the subkey that signed */
	unsigned kind;                          /* one byte */
};

/* Parses what follows the word VALIDSIG. 0, or -EINVAL. */
int status_valid_parse(const char *args, struct status_valid *ret);

#endif
