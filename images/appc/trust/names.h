/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the keystore: prefixes of image names, fingerprints of keys, identities. Pure.
 *
 * A name is components with slashes between: "example.com/team/app". A prefix is one or more of a
 * name's first components.
 */
#ifndef IMAGES_APPC_TRUST_NAMES_H
#define IMAGES_APPC_TRUST_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Longest prefix or name; no image has a longer name. */
#define TRUST_NAME_MAX ((size_t)255)
/* Digits of the longest fingerprint, SHA-256 of an OpenPGP key of version 5 or 6 (RFC 9580). */
#define TRUST_FINGERPRINT_MAX ((size_t)64)
/* Longest identity that is shown, in bytes; the keys of people and projects have less than 100. */
#define TRUST_IDENTITY_MAX ((size_t)255)
/*
 * Longest text of trust_format_fingerprint(): a blank behind every four digits, one in the middle.
 */
#define TRUST_FORMATTED_MAX (TRUST_FINGERPRINT_MAX + TRUST_FINGERPRINT_MAX / 4)

/*
 * Checks that @name can be a prefix or name: components of letters, digits and "-._~:" that begin
 * with none of these. So it is not an absolute path, no URL and has no "..". 0, or -EINVAL and @e
 * with cause and remedy; @what ("--prefix") begins the message.
 */
int trust_check_name(const char *what, const char *name, struct err *e);

/* True if @s is a fingerprint as files are named: 40 or 64 lower-case hexadecimal digits. */
bool trust_is_fingerprint(const char *s);

/*
 * Copies the fingerprint @s with any case of digits as trust_is_fingerprint() wants it. -EINVAL if
 * it is none.
 */
int trust_copy_fingerprint(char out[TRUST_FINGERPRINT_MAX + 1], const char *s);

/* Writes @fingerprint for people: upper case, groups of four, a wider gap in the middle. */
void trust_format_fingerprint(const char *fingerprint, char out[TRUST_FORMATTED_MAX + 1]);

/*
 * Copies the identity @s, which the maker of a key chose, so that it can be shown: UTF-8, cut if
 * need be, with '?' for each control character and for each of those that change the direction of
 * text or the end of a line.
 */
void trust_copy_identity(char out[TRUST_IDENTITY_MAX + 1], const char *s);

#endif
