/* SPDX-License-Identifier: Apache-2.0 */
/* Pod identifiers: RFC 4122 version 4 UUIDs in their lower-case text form. */
#ifndef LIB_BASE_UUID_H
#define LIB_BASE_UUID_H

#include <stdbool.h>

#define UUID_BYTES    16
#define UUID_TEXT_LEN 36 /* without the NUL */

struct uuid {
	char text[UUID_TEXT_LEN + 1];
};

/* Turns 16 random bytes into a version 4 UUID. */
void uuid_from_random(const unsigned char bytes[UUID_BYTES], struct uuid *ret);

/* True if @s is a UUID in the canonical lower-case form. */
bool uuid_is_valid(const char *s);

#endif
