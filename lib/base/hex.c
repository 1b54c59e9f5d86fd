/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hex.h"

#include <errno.h>
#include <string.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

void hex_encode(const unsigned char *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * len] = '\0';
}

bool hex_is_valid(const char *s, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		if (digit_value(s[i]) < 0)
			return false;
	return s[digits] == '\0';
}

int hex_decode(const char *s, unsigned char *out, size_t len)
{
	if (!hex_is_valid(s, 2 * len))
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned high = (unsigned)digit_value(s[2 * i]);
		unsigned low = (unsigned)digit_value(s[2 * i + 1]);
		out[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}
