/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/uuid.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/hex.h"

/* Bytes behind which the text form has a dash. */
static bool dash_follows(size_t byte)
{
	return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

void uuid_from_random(const unsigned char bytes[UUID_BYTES], struct uuid *ret)
{
	unsigned char b[UUID_BYTES];
	memcpy(b, bytes, sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* RFC 4122 variant */
	char *p = ret->text;
	for (size_t i = 0; i < UUID_BYTES; i++) {
		hex_encode(&b[i], 1, p);
		p += 2;
		if (dash_follows(i))
			*p++ = '-';
	}
	*p = '\0';
}

bool uuid_is_valid(const char *s)
{
	if (strnlen(s, UUID_TEXT_LEN + 1) != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		char c[2] = { s[i], '\0' };
		if (dash ? s[i] != '-' : !hex_is_valid(c, 1))
			return false;
	}
	return true;
}
